#include "common/tensor/element_math.h"

#include <bit>

#include "common/base/check.h"
#include "common/tensor/sum_of_terms.h"
#include "common/tensor/vector_loop.h"

namespace lockstep {
namespace {

// bfloat16 is the upper half of a float: computed in float, rounded to nearest even.
class BFloat16 {
 public:
  explicit BFloat16(float value) {
    const uint32_t bits = std::bit_cast<uint32_t>(value);
    const bool is_nan = (bits & 0x7fffffffu) > 0x7f800000u;
    const uint32_t rounded = is_nan ? bits | 0x00400000u : bits + 0x7fffu + ((bits >> 16) & 1u);
    bits_ = static_cast<uint16_t>(rounded >> 16);
  }
  explicit operator float() const {
    return std::bit_cast<float>(static_cast<uint32_t>(bits_) << 16);
  }
  friend BFloat16 operator+(BFloat16 a, BFloat16 b) {
    return BFloat16(static_cast<float>(a) + static_cast<float>(b));
  }
  friend BFloat16 operator/(BFloat16 a, BFloat16 b) {
    return BFloat16(static_cast<float>(a) / static_cast<float>(b));
  }

 private:
  uint16_t bits_;
};

// Half precision. A sum or quotient of two halves computed in float and rounded again is correctly
// rounded: float has more than twice the digits.
class Float16 {
 public:
  explicit Float16(float value) : value_(static_cast<_Float16>(value)) {}
  explicit operator float() const { return static_cast<float>(value_); }
  friend Float16 operator+(Float16 a, Float16 b) {
    return Float16(static_cast<float>(a) + static_cast<float>(b));
  }
  friend Float16 operator/(Float16 a, Float16 b) {
    return Float16(static_cast<float>(a) / static_cast<float>(b));
  }

 private:
  _Float16 value_;
};
static_assert(sizeof(Float16) == 2 && sizeof(BFloat16) == 2);

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
  LOCKSTEP_CHECK(!terms.empty());
  for (const TensorView& term : terms) {
    LOCKSTEP_CHECK(term.dtype == terms[0].dtype);
    LOCKSTEP_CHECK(term.num_elements() == terms[0].num_elements());
    LOCKSTEP_CHECK(range.first + range.count <= static_cast<size_t>(term.num_elements()));
  }
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
