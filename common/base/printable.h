// Text of others (peers, files, the operating system) for lines that people read.
#pragma once

#include <cstddef>
#include <string>

#include "absl/strings/string_view.h"

namespace lockstep {

// `text` on one line: control characters, and bytes that are not UTF-8, as \n, \r, \t or \xNN. Text
// of more than `max_bytes` is cut between characters and ends in "...". Nothing that it returns can
// look like a second log line or move a terminal's cursor. Thread-safe.
std::string Printable(absl::string_view text, size_t max_bytes);

}  // namespace lockstep
