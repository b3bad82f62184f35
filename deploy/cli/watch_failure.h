// What `lockstep status --watch` does when a process does not answer. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep::deploy {

struct WatchFailure {
  std::string line;        // for the user
  bool has_ended = false;  // the process, as far as can be seen: the watch ends with it
};

// `failure`: of a question to the process at `address`, which has answered before; `is_repeated`:
// the question before had no connection, either. It is returned where only the user can do
// something about it: the watch ends with that error.
absl::StatusOr<WatchFailure> ExplainWatchFailure(const std::string& address,
                                                 const absl::Status& failure, bool is_repeated);

// Whether there was no connection: the next failure is a repeated one.
bool IsUnconnected(const absl::Status& failure);

}  // namespace lockstep::deploy
