// ValidateSparse checks that a sparse gradient fits, in TensorFlow's order and words.
#pragma once

#include "absl/status/status.h"
#include "common/tensor/tensor.h"
#include "tests/reference/partial_shape.h"
#include "tests/reference/sparse_gradient.h"

namespace lockstep::reference {

// `sum` is the shape of the slices accumulated so far, nullptr for none. An index is compared with
// the declared number of rows, if one is declared, and never with zero: a negative one passes, as
// it does in TensorFlow. All errors are INVALID_ARGUMENT.
absl::Status ValidateSparse(const SparseGradientView& gradient, const PartialShape& declared,
                            DType dtype, const Shape* sum);

}  // namespace lockstep::reference
