// Sparse gradients as they are pushed to a sparse accumulator and taken from it.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/types/span.h"
#include "common/tensor/tensor.h"

namespace lockstep::reference {

// A gradient as it was pushed, valid or not. Does not own the tensors.
struct SparseGradientView {
  TensorView indices;  // int64 or int32, [n]: the row to which each slice belongs
  TensorView values;   // [n, ...]
  // Of the whole gradient, if the sender states it.
  std::optional<absl::Span<const int64_t>> dense_shape;
};

struct SparseGradient {
  std::vector<int64_t> indices;
  Tensor values;  // [indices.size(), ...]
  // The declared number of rows, -1 where there is none, and the extents of a slice.
  std::vector<int64_t> dense_shape;
};

}  // namespace lockstep::reference
