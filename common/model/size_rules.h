// Checks that the rules of all layers share: sizes, and the number of inputs.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/tensor/shape.h"

namespace lockstep {

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

// Returns the shape. INVALID_ARGUMENT naming `what`: a tensor of it would be too large.
absl::StatusOr<Shape> SizedShape(absl::string_view what, absl::Span<const int64_t> dims);

// Requires exactly `fewest` inputs; with `more`, at least `fewest`.
absl::Status RequireInputs(absl::Span<const Shape> inputs, size_t fewest, bool more);

// Requires one dimension.
absl::Status RequireVector(const Shape& input);

// Returns the value of `field`, which must be at least 1.
absl::StatusOr<int64_t> Positive(absl::string_view field, int64_t value);

}  // namespace lockstep
