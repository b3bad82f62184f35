#include "tests/reference/sparse_accumulator.h"

#include <algorithm>
#include <utility>

#include "common/base/check.h"
#include "common/tensor/element_math.h"
#include "common/update/sparse_sum.h"
#include "tests/reference/sparse_validation.h"

namespace lockstep::reference {
namespace {

IndexedSlicesView ViewOf(const Gradient& gradient) {
  const auto indices = gradient.indices.as<int64_t>();
  return {{indices.data(), indices.size()}, gradient.value.view()};
}

IndexedSlices SumOf(const std::vector<IndexedSlicesView>& gradients) {
  SparseSum sum(gradients.front());
  for (size_t i = 1; i < gradients.size(); ++i) sum.Add(gradients[i]);
  return sum.Finish().sum;
}

}  // namespace

SparseAccumulator::SparseAccumulator(DType dtype, PartialShape shape, Reduction reduction,
                                     RowMerge merge)
    : WaitingAccumulator(reduction), dtype_(dtype), shape_(std::move(shape)), merge_(merge) {
  LOCKSTEP_CHECK(HasElementMath(dtype));
}

absl::Status SparseAccumulator::Validate(const SparseGradientView& gradient) const {
  return ValidateSparse(gradient, shape_, dtype_,
                        num_accumulated() > 0 ? &first().value.shape() : nullptr);
}

Gradient SparseAccumulator::CopyOf(const SparseGradientView& gradient) const {
  Tensor values(gradient.values.dtype, gradient.values.shape);
  Copy(gradient.values, values.view());
  Tensor indices(DType::kInt64, gradient.indices.shape);
  if (gradient.indices.dtype == DType::kInt32) {
    std::ranges::copy(gradient.indices.as<int32_t>(), indices.as<int64_t>().begin());
  } else {
    Copy(gradient.indices, indices.view());
  }
  Gradient copy{std::move(values), std::move(indices)};
  if (merge_ == RowMerge::kAsPushed) return copy;
  IndexedSlices merged = SortAndMerge(ViewOf(copy));
  Tensor rows(DType::kInt64, Shape({static_cast<int64_t>(merged.indices.size())}));
  std::ranges::copy(merged.indices, rows.as<int64_t>().begin());
  return {std::move(merged.values), std::move(rows)};
}

SparseGradient SparseAccumulator::Reduce(ps::TakenGradients taken) const {
  std::vector<IndexedSlicesView> gradients;
  for (const ps::HeldGradient& held : taken.gradients) gradients.push_back(ViewOf(held.gradient));
  IndexedSlices rows = reduction() == Reduction::kMean ? SparseMean(gradients) : SumOf(gradients);
  const Shape& shape = rows.values.shape();
  SparseGradient reduced;
  reduced.dense_shape.assign(shape.dims().begin(), shape.dims().end());
  reduced.dense_shape[0] = shape_.rank() > 0 ? shape_.dim(0) : PartialShape::kUnknown;
  reduced.indices = std::move(rows.indices);
  reduced.values = std::move(rows.values);
  return reduced;
}

}  // namespace lockstep::reference
