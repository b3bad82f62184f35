// Files that a person writes: cluster specs, jobs, models.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The text of a file, without a byte order mark. Errors as ReadFile's (exit code 66 for a missing
// file); INVALID_ARGUMENT naming the place for a file over 16 MiB or one that is not UTF-8 text.
absl::StatusOr<std::string> ReadTextFile(const std::string& path);

bool IsUtf8(absl::string_view text);

// "3:14": line and column, counted from 1, columns in bytes, of the byte at `offset`.
std::string LineAndColumn(absl::string_view text, size_t offset);

}  // namespace lockstep
