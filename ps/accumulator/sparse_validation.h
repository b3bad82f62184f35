// Which sparse gradients fit, in TensorFlow's order and words.
#pragma once

#include "absl/status/status.h"
#include "common/tensor/tensor.h"
#include "ps/accumulator/partial_shape.h"
#include "ps/accumulator/sparse_gradient.h"

namespace lockstep::ps {

// `sum` are the slices accumulated so far, nullptr for none. An index is compared with the declared
// number of rows, where one is declared, and never with zero: a negative one passes, as it does in
// TensorFlow. All errors are INVALID_ARGUMENT.
absl::Status ValidateSparse(const SparseGradientView& gradient, const PartialShape& declared,
                            DType dtype, const Shape* sum);

}  // namespace lockstep::ps
