#include "deploy/cli/finish_command.h"

#include <cstdio>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"

namespace lockstep::deploy {

int FinishCommand(absl::string_view command, const absl::StatusOr<int>& exit_code) {
  if (exit_code.ok()) return *exit_code;
  const std::string line = absl::StrCat(command, ": ", exit_code.status().message(), "\n");
  std::fputs(line.c_str(), stderr);
  return static_cast<int>(ExitCodeFor(exit_code.status()));
}

}  // namespace lockstep::deploy
