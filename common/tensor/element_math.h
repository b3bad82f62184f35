// Sums and quotients in the arithmetic of the elements' own type: each is rounded to it. float32,
// float64, float16, bfloat16. And sums in float32 of what is narrower.
#pragma once

#include <cstddef>

#include "absl/types/span.h"
#include "common/tensor/tensor.h"

namespace lockstep {

bool HasElementMath(DType dtype);

// Elements [first, first + count) of tensors.
struct ElementRange {
  size_t first = 0;
  size_t count = 0;
};

// The sum of the terms in their order, divided by `divisor`, which is rounded to the dtype first.
// One dtype and number of elements throughout, at least one term (CHECK). `quotient` has
// range.count elements. Its memory may be that of this range of one of the first kTermsAtATime
// terms, and of no other.
void SumAndDivide(absl::Span<const TensorView> terms, int divisor, ElementRange range,
                  void* quotient);

// The same in float32, of terms that are float32, float16 or bfloat16 (CHECK), each of its own:
// what is narrower is widened, exactly, as it is read.
void SumWidenedAndDivide(absl::Span<const TensorView> terms, int divisor, ElementRange range,
                         float* quotient);

// By rows of `width` elements that lie anywhere, aligned to their element's size: sum += term.
struct RowSum {
  void* sum = nullptr;
  const void* term = nullptr;
};
void AddRows(DType dtype, size_t width, absl::Span<const RowSum> rows);
// Row i of `rows`, which lie one after another, is divided by counts[i].
void DivideRows(DType dtype, size_t width, void* rows, absl::Span<const int> counts);

}  // namespace lockstep
