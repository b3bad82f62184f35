// Sums and quotients in the arithmetic of the elements' own type: each is rounded to it. float32,
// float64, float16, bfloat16.
#pragma once

#include "absl/types/span.h"
#include "common/tensor/tensor.h"

namespace lockstep {

bool HasElementMath(DType dtype);

// sum += term. Same dtype and number of elements (CHECK).
void AddTo(MutableTensorView sum, TensorView term);
// sum /= count, with count rounded to the dtype first.
void DivideBy(MutableTensorView sum, int count);

// The same by rows of `width` elements that lie anywhere, aligned to their element's size.
struct RowSum {
  void* sum = nullptr;
  const void* term = nullptr;
};
void AddRows(DType dtype, size_t width, absl::Span<const RowSum> rows);
// Row i of `rows`, which lie one after another, is divided by counts[i].
void DivideRows(DType dtype, size_t width, void* rows, absl::Span<const int> counts);

}  // namespace lockstep
