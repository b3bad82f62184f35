#include "tests/reference/sparse_validation.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"

namespace lockstep::reference {
namespace {

template <typename... Parts>
absl::Status Invalid(const Parts&... parts) {
  return absl::InvalidArgumentError(absl::StrCat(parts...));
}

absl::Status CheckParts(const SparseGradientView& gradient, DType dtype) {
  const TensorView& indices = gradient.indices;
  const TensorView& values = gradient.values;
  if (indices.dtype != DType::kInt64 && indices.dtype != DType::kInt32) {
    return Invalid("Dtype mismatch: expected indices of int64, got ", Name(indices.dtype));
  }
  if (values.dtype != dtype) {
    return Invalid("Dtype mismatch: expected ", Name(dtype), ", got ", Name(values.dtype));
  }
  if (indices.shape.rank() != 1) {
    return Invalid("Input indices should be vector but received shape: ", indices.shape.ToString());
  }
  if (values.shape.rank() == 0) return Invalid("Values cannot be 0-dimensional.");
  if (values.shape.dim(0) != indices.shape.dim(0)) {
    return Invalid("Expected ", indices.shape.dim(0), " non-empty input values, got ",
                   values.shape.dim(0));
  }
  return absl::OkStatus();
}

absl::Status CheckDenseShape(absl::Span<const int64_t> given, const PartialShape& declared) {
  if (declared.rank() > static_cast<int>(given.size())) {
    return Invalid("Shape mismatch: expected shape rank at least ", declared.rank(), ", got ",
                   given.size());
  }
  for (int axis = 0; axis < declared.rank(); ++axis) {
    if (declared.dim(axis) != PartialShape::kUnknown && declared.dim(axis) != given[axis]) {
      return Invalid("Shape mismatch: expected shape dim ", axis, " to be ", declared.dim(axis),
                     ", got ", given[axis]);
    }
  }
  return absl::OkStatus();
}

template <typename Index>
absl::Status CheckIndices(const TensorView& indices, int64_t num_rows) {
  const auto* index = static_cast<const Index*>(indices.data);
  for (int64_t i = 0; i < indices.num_elements(); ++i) {
    if (index[i] >= num_rows) {
      return Invalid("Shape mismatch: index of slice ", i, " exceeded limits of shape; index is ",
                     index[i], " exceeded ", num_rows);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckValues(const Shape& values, const PartialShape& declared, const Shape* sum) {
  if (sum != nullptr && sum->rank() != values.rank()) {
    return Invalid("Shape mismatch: expected values rank ", sum->rank(), ", got ", values.rank());
  }
  if (sum == nullptr && declared.rank() > values.rank()) {
    return Invalid("Shape mismatch: expected values rank at least ", declared.rank(), ", got ",
                   values.rank());
  }
  const int rank = sum != nullptr ? sum->rank() : declared.rank();
  for (int axis = 1; axis < rank; ++axis) {
    const int64_t expected = sum != nullptr ? sum->dim(axis) : declared.dim(axis);
    if (expected != PartialShape::kUnknown && expected != values.dim(axis)) {
      return Invalid("Shape mismatch: expected values dim ", axis, " to be ", expected, ", got ",
                     values.dim(axis));
    }
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status ValidateSparse(const SparseGradientView& gradient, const PartialShape& declared,
                            DType dtype, const Shape* sum) {
  LOCKSTEP_RETURN_IF_ERROR(CheckParts(gradient, dtype));
  if (gradient.dense_shape.has_value()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckDenseShape(*gradient.dense_shape, declared));
  }
  if (declared.rank() > 0 && declared.dim(0) != PartialShape::kUnknown) {
    LOCKSTEP_RETURN_IF_ERROR(gradient.indices.dtype == DType::kInt64
                                 ? CheckIndices<int64_t>(gradient.indices, declared.dim(0))
                                 : CheckIndices<int32_t>(gradient.indices, declared.dim(0)));
  }
  return CheckValues(gradient.values.shape, declared, sum);
}

}  // namespace lockstep::reference
