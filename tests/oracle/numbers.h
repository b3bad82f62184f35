// Numbers of a script as tensors, and tensors as numbers.
#pragma once

#include <nlohmann/json.hpp>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/tensor.h"

namespace lockstep::oracle {

// Nested lists as one, row-major; "nan", "inf" and "-inf" as what they name. A double holds every
// element of every dtype exactly. Throws nlohmann::json::exception for what is no number.
std::vector<double> Flatten(const nlohmann::json& nested);

// float16, float32 or float64 (CHECK). INVALID_ARGUMENT: another number of elements.
absl::StatusOr<Tensor> TensorOf(DType dtype, const Shape& shape,
                                const std::vector<double>& elements);
std::vector<double> ElementsOf(const TensorView& tensor);

}  // namespace lockstep::oracle
