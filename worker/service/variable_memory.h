// How much memory of its host a worker certainly takes for the variables of its job.
#pragma once

#include <cstdint>

#include "common/base/memory_room.h"
#include "common/optimizer_proto/optimizer_rules.h"
#include "worker/cache/variable_layout.h"

namespace lockstep::worker {

struct VariableUse {
  // Towers that hold variables of their own: each of a replicated or asynchronous job. In other
  // jobs all towers of a worker share them.
  uint64_t holders = 1;
  // Towers may read values in the memory of a ps, unless the variable is split. Not read of a
  // replicated job.
  bool values_in_place = false;
  // Of a replicated job, whose towers apply the updates; otherwise null.
  const OptimizerRules* rules = nullptr;
};

// For CheckRoomFor. The bytes are a lower bound: those of tensors of whole variables that are in
// memory together in each step. Not counted, because they depend on batches, hosts or the moment:
// rows of tables, messages, versions that somebody else still reads, and what the passes of a tower
// take. The error names the largest variable.
MemoryNeed NeedOfVariables(const VariableLayout& layout, const VariableUse& use);

}  // namespace lockstep::worker
