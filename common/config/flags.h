// The command line of a binary, over flags defined with ABSL_FLAG. absl's own parser ends the
// process with code 1 on a mistake; this one tells.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/base/exit_code.h"

namespace lockstep {

struct FlagsResult {
  bool exit = false;  // main returns `code` after printing `output` and `error`
  ExitCode code = ExitCode::kDone;
  std::string output;  // for stdout: the answer to --help or --version
  std::string error;   // for stderr: one line
};

// Sets the flags that `arguments` name: --name=value, --name value, --bool, --nobool; one dash
// counts as two, the last one wins. INVALID_ARGUMENT with exit code 64 for an unknown flag (naming
// the nearest), a missing or bad value, and for anything that is no flag. Before the process has
// threads.
absl::Status SetFlags(absl::Span<const char* const> arguments);

// SetFlags on a whole command line, with --help and --version, which win over mistakes. The answer
// to --help is `usage` and a list of every flag that the program defines.
FlagsResult ParseFlags(absl::string_view program, absl::string_view usage,
                       absl::Span<const char* const> arguments);

// ParseFlags for main, printed: `if (auto flags = HandleFlags("ps", kUsage, argc, argv);
// flags.exit) return static_cast<int>(flags.code);`
FlagsResult HandleFlags(absl::string_view program, absl::string_view usage, int argc,
                        const char* const* argv);

}  // namespace lockstep
