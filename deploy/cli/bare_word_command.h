// Commands with one word that needs no flag's name, such as `lockstep status ADDRESS`.
#pragma once

#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace lockstep::deploy {

struct BareWordCommand {
  const char* name;   // "lockstep status"
  const char* usage;  // the answer to --help, before the flags
  // The program's flags that take a value, such as "--address". The bare word, which may come first
  // or last, is the value of the first of them.
  std::vector<std::string> valued;
};

// What such a command's main does and returns: `run` is called once, with the flags parsed. It
// returns the exit code, or an error, which is printed as one line.
int RunCommand(const BareWordCommand& command, int argc, char** argv,
               absl::FunctionRef<absl::StatusOr<int>()> run);

}  // namespace lockstep::deploy
