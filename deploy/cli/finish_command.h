// How a command's main ends.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::deploy {

// The exit code, given as such or for an error, which is printed to stderr as one line.
int FinishCommand(absl::string_view command, const absl::StatusOr<int>& exit_code);

}  // namespace lockstep::deploy
