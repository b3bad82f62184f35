#include "deploy/cli/finish_command.h"

#include "common/base/exit_code.h"

namespace lockstep::deploy {

int FinishCommand(absl::string_view command, const absl::StatusOr<int>& exit_code) {
  return exit_code.ok() ? *exit_code : PrintFailure(command, exit_code.status());
}

}  // namespace lockstep::deploy
