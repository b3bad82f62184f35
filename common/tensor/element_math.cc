#include "common/tensor/element_math.h"

#include <algorithm>

#include "common/base/check.h"
#include "common/tensor/half_width.h"
#include "common/tensor/sum_of_terms.h"
#include "common/tensor/vector_loop.h"

namespace lockstep {
namespace {

template <typename Body>
void Dispatch(DType dtype, Body body) {
  switch (dtype) {
    case DType::kFloat32:
      return body.template operator()<float>();
    case DType::kFloat64:
      return body.template operator()<double>();
    case DType::kFloat16:
      return body.template operator()<Float16>();
    case DType::kBFloat16:
      return body.template operator()<BFloat16>();
    default:
      LOCKSTEP_CHECK(false && "a dtype without element arithmetic");
  }
}

template <typename Body>
void DispatchWidened(DType dtype, Body body) {
  switch (dtype) {
    case DType::kFloat32:
      return body.template operator()<float>();
    case DType::kFloat16:
      return body.template operator()<Float16>();
    case DType::kBFloat16:
      return body.template operator()<BFloat16>();
    default:
      LOCKSTEP_CHECK(false && "a dtype that is not summed in float32");
  }
}

void CheckTerms(absl::Span<const TensorView> terms, ElementRange range) {
  LOCKSTEP_CHECK(!terms.empty());
  for (const TensorView& term : terms) {
    LOCKSTEP_CHECK(term.num_elements() == terms[0].num_elements());
    LOCKSTEP_CHECK(range.first + range.count <= static_cast<size_t>(term.num_elements()));
  }
}

// Rows shorter than this are not worth the choice of a target.
constexpr size_t kShortRow = 16;

template <typename Body>
void ForEachOfRow(size_t width, Body body) {
  if (width >= kShortRow) return ForEachElement(width, body);
  for (size_t i = 0; i < width; ++i) body(i);
}

}  // namespace

bool HasElementMath(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16;
}

void SumAndDivide(absl::Span<const TensorView> terms, int divisor, ElementRange range,
                  void* quotient) {
  CheckTerms(terms, range);
  for (const TensorView& term : terms) LOCKSTEP_CHECK(term.dtype == terms[0].dtype);
  Dispatch(terms[0].dtype, [&]<typename T>() {
    T* const to = static_cast<T*>(quotient);
    WithSumOfTerms<T>(terms, range.first, [&](auto sum) {
      ForEachElement(range.count, [sum, to](size_t i) { to[i] = sum(i); });
    });
    for (size_t k = kTermsAtATime; k < terms.size(); ++k) {
      ForEachElement(range.count, [to, term = static_cast<const T*>(terms[k].data) +
                                              range.first](size_t i) { to[i] = to[i] + term[i]; });
    }
    if (divisor == 1) return;
    ForEachElement(range.count,
                   [to, by = static_cast<T>(divisor)](size_t i) { to[i] = to[i] / by; });
  });
}

void SumWidenedAndDivide(absl::Span<const TensorView> terms, int divisor, ElementRange range,
                         float* quotient) {
  CheckTerms(terms, range);
  // The first few terms in one pass, as far as they are of one type.
  const absl::Span<const TensorView> few = terms.first(std::min(terms.size(), kTermsAtATime));
  const bool are_alike = std::ranges::all_of(
      few, [&](const TensorView& term) { return term.dtype == terms[0].dtype; });
  size_t summed = are_alike ? few.size() : 1;
  DispatchWidened(terms[0].dtype, [&]<typename T>() {
    WithSumOfTerms<float, T>(terms.first(summed), range.first, [&](auto sum) {
      ForEachElement(range.count, [sum, quotient](size_t i) { quotient[i] = sum(i); });
    });
  });
  for (; summed < terms.size(); ++summed) {
    DispatchWidened(terms[summed].dtype, [&]<typename T>() {
      ForEachElement(range.count,
                     [quotient, term = static_cast<const T*>(terms[summed].data) + range.first](
                         size_t i) { quotient[i] += static_cast<float>(term[i]); });
    });
  }
  if (divisor == 1) return;
  ForEachElement(range.count, [quotient, by = static_cast<float>(divisor)](size_t i) {
    quotient[i] = quotient[i] / by;
  });
}

void AddRows(DType dtype, size_t width, absl::Span<const RowSum> rows) {
  Dispatch(dtype, [&]<typename T>() {
    for (const RowSum& row : rows) {
      ForEachOfRow(width, [to = static_cast<T*>(row.sum), from = static_cast<const T*>(row.term)](
                              size_t i) { to[i] = to[i] + from[i]; });
    }
  });
}

void DivideRows(DType dtype, size_t width, void* rows, absl::Span<const int> counts) {
  Dispatch(dtype, [&]<typename T>() {
    T* row = static_cast<T*>(rows);
    for (const int count : counts) {
      if (count != 1) {
        ForEachOfRow(width, [row, by = static_cast<T>(count)](size_t i) { row[i] = row[i] / by; });
      }
      row += width;
    }
  });
}

}  // namespace lockstep
