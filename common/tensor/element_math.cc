#include "common/tensor/element_math.h"

#include <bit>

#include "common/base/check.h"

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

}  // namespace

bool HasElementMath(DType dtype) {
  return dtype == DType::kFloat32 || dtype == DType::kFloat64 || dtype == DType::kFloat16 ||
         dtype == DType::kBFloat16;
}

void AddTo(MutableTensorView sum, TensorView term) {
  LOCKSTEP_CHECK(sum.dtype == term.dtype && sum.num_elements() == term.num_elements());
  Dispatch(sum.dtype, [&]<typename T>() {
    T* to = static_cast<T*>(sum.data);
    const T* from = static_cast<const T*>(term.data);
    const int64_t size = sum.num_elements();
    for (int64_t i = 0; i < size; ++i) to[i] = to[i] + from[i];
  });
}

void DivideBy(MutableTensorView sum, int count) {
  Dispatch(sum.dtype, [&]<typename T>() {
    T* to = static_cast<T*>(sum.data);
    const T divisor = static_cast<T>(count);
    const int64_t size = sum.num_elements();
    for (int64_t i = 0; i < size; ++i) to[i] = to[i] / divisor;
  });
}

void AddRows(DType dtype, size_t width, absl::Span<const RowSum> rows) {
  Dispatch(dtype, [&]<typename T>() {
    for (const RowSum& row : rows) {
      T* to = static_cast<T*>(row.sum);
      const T* from = static_cast<const T*>(row.term);
      for (size_t i = 0; i < width; ++i) to[i] = to[i] + from[i];
    }
  });
}

void DivideRows(DType dtype, size_t width, void* rows, absl::Span<const int> counts) {
  Dispatch(dtype, [&]<typename T>() {
    T* row = static_cast<T*>(rows);
    for (const int count : counts) {
      const T divisor = static_cast<T>(count);
      for (size_t i = 0; count != 1 && i < width; ++i) row[i] = row[i] / divisor;
      row += width;
    }
  });
}

}  // namespace lockstep
