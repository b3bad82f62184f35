// Ends a command's main.
#pragma once

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep::deploy {

// Returns the exit code. Prints an error to stderr as one line, and returns the error's exit code.
int FinishCommand(absl::string_view command, const absl::StatusOr<int>& exit_code);

}  // namespace lockstep::deploy
