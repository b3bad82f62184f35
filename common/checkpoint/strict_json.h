// JSON from files that may be damaged or hostile.
#pragma once

#include <nlohmann/json_fwd.hpp>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/tensor/shape.h"

namespace lockstep {

// The value that `text` holds. Refused, beside what JSON forbids: a key that is given twice, bytes
// of value 0, and nesting deeper than `max_depth` (an array of numbers has depth 1). DATA_LOSS says
// what is wrong and at which byte.
absl::StatusOr<nlohmann::json> ParseStrictJson(absl::string_view text, int max_depth);

// The shape in a list of extents; DATA_LOSS says what is wrong with it.
absl::StatusOr<Shape> ShapeFromJson(const nlohmann::json& json);

}  // namespace lockstep
