// The one wrapper over spdlog. Lines go to stderr: time, level, role and task, message. A message
// is one line, whatever text of a peer it quotes: control characters are escaped, its end is cut.
// Thread-safe.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/string_view.h"

namespace lockstep::log {

// Names this process in every line ("worker 1"). Call once, first thing in main. `level`: "info",
// "warning", "error"; otherwise an error with exit code 64.
absl::Status Init(absl::string_view process, absl::string_view level);

void Info(absl::string_view message);
void Warning(absl::string_view message);
void Error(absl::string_view message);

}  // namespace lockstep::log
