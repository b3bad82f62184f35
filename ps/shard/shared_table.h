// A table between the thread that closes its variable and those that copy rows for pulls. Whoever
// has the lock has it for as long as a few megabytes take to copy, or a step to apply; beneath it
// no other lock is taken.
#pragma once

#include <memory>

#include "absl/synchronization/mutex.h"
#include "common/update/table.h"

namespace lockstep::ps {

struct SharedTable {
  explicit SharedTable(std::shared_ptr<Table> of) : table(std::move(of)) {}

  const std::shared_ptr<Table> table;
  // For writing while a version is made, for reading while rows are copied.
  mutable absl::Mutex mutex;
};

}  // namespace lockstep::ps
