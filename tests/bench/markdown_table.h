// The results of a whole run as docs/performance.md shows them.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"

namespace lockstep::bench {

// Markdown: a line that says where, when and from which commit the figures are, and a table with
// all rows. `results` is what `bench --json` has written.
std::string MarkdownTable(const nlohmann::json& results);

// That of a file with such results. INVALID_ARGUMENT when it has no results.
absl::StatusOr<std::string> ReadMarkdownTable(const std::string& path);

}  // namespace lockstep::bench
