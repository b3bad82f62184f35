// A sparse gradient as an entry of a log has it, sound or not.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "absl/status/statusor.h"
#include "common/tensor/tensor.h"
#include "tests/reference/sparse_gradient.h"

namespace lockstep::oracle {

struct SparseInput {
  Tensor indices;
  Tensor values;
  std::optional<std::vector<int64_t>> dense_shape;

  reference::SparseGradientView view() const;
};

// `entry` has "indices" and "values", and may have "indices_shape" and "dense_shape".
absl::StatusOr<SparseInput> SparseInputOf(const nlohmann::json& entry, DType dtype,
                                          const Shape& values_shape);

}  // namespace lockstep::oracle
