// Fields that scripts of several kinds have. Errors: INVALID_ARGUMENT; a field that is missing
// throws nlohmann::json::exception.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "absl/status/statusor.h"
#include "common/tensor/tensor.h"

namespace lockstep::oracle {

absl::StatusOr<DType> DTypeIn(const nlohmann::json& script);
absl::StatusOr<Shape> ShapeIn(const nlohmann::json& from, const std::string& field);

}  // namespace lockstep::oracle
