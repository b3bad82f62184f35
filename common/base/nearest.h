// "Did you mean ...?": the known names closest to one that a user got wrong.
#pragma once

#include <string>
#include <vector>

#include "absl/strings/string_view.h"
#include "absl/types/span.h"

namespace lockstep {

// Edits (insert, delete, replace, swap of neighbours; case does not count) that turn one into the
// other.
int EditDistance(absl::string_view a, absl::string_view b);

// `known` with the nearest to `wrong` first; equally near ones keep their order.
std::vector<std::string> NearestFirst(absl::string_view wrong, absl::Span<const std::string> known);

// The nearest of `known` when it is near enough to be what was meant, or "" when none is.
std::string Nearest(absl::string_view wrong, absl::Span<const std::string> known);

}  // namespace lockstep
