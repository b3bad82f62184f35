// Decides how `lockstep status --watch` reacts when a process does not answer. Pure.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace lockstep::deploy {

struct WatchFailure {
  std::string line;        // for the user
  bool has_ended = false;  // the process probably ended: the watch ends, too
};

// `failure`: of a call to the process at `address`, which has answered before. `is_repeated`: the
// previous call had no connection, either. Returns `failure` if only the user can correct it: the
// watch ends with that error.
absl::StatusOr<WatchFailure> ExplainWatchFailure(const std::string& address,
                                                 const absl::Status& failure, bool is_repeated);

// Returns whether there was no connection: the next failure is then a repeated one.
bool IsUnconnected(const absl::Status& failure);

}  // namespace lockstep::deploy
