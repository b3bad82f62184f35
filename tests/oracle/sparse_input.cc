#include "tests/oracle/sparse_input.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "tests/oracle/fields.h"
#include "tests/oracle/numbers.h"

namespace lockstep::oracle {
namespace {

using nlohmann::json;

absl::StatusOr<Tensor> IndicesIn(const json& entry) {
  // Whole numbers up to 2^53 go through a double unchanged.
  const std::vector<double> indices = Flatten(entry.at("indices"));
  Shape shape({static_cast<int64_t>(indices.size())});
  if (entry.contains("indices_shape")) {
    LOCKSTEP_ASSIGN_OR_RETURN(shape, ShapeIn(entry, "indices_shape"));
  }
  if (static_cast<size_t>(shape.num_elements()) != indices.size()) {
    return absl::InvalidArgumentError(
        absl::StrCat("indices: expected ", shape.num_elements(), ", got ", indices.size()));
  }
  Tensor tensor(DType::kInt64, shape);
  std::ranges::transform(indices, tensor.as<int64_t>().begin(),
                         [](double index) { return static_cast<int64_t>(index); });
  return tensor;
}

}  // namespace

reference::SparseGradientView SparseInput::view() const {
  reference::SparseGradientView view{.indices = indices.view(), .values = values.view()};
  if (dense_shape.has_value()) view.dense_shape = *dense_shape;
  return view;
}

absl::StatusOr<SparseInput> SparseInputOf(const json& entry, DType dtype,
                                          const Shape& values_shape) {
  SparseInput input;
  LOCKSTEP_ASSIGN_OR_RETURN(input.indices, IndicesIn(entry));
  LOCKSTEP_ASSIGN_OR_RETURN(input.values,
                            TensorOf(dtype, values_shape, Flatten(entry.at("values"))));
  if (entry.contains("dense_shape")) {
    input.dense_shape = entry.at("dense_shape").get<std::vector<int64_t>>();
  }
  return input;
}

}  // namespace lockstep::oracle
