// Sums and quotients of whole ranges against loops over single elements, for every set of vector
// instructions that this CPU has.
#include <bit>
#include <catch2/catch.hpp>
#include <cmath>
#include <cstring>
#include <limits>
#include <random>
#include <vector>

#include "common/tensor/element_math.h"
#include "common/tensor/non_temporal_copy.h"
#include "common/tensor/vector_target.h"

namespace lockstep {
namespace {

// Puts everything back to the widest target.
class TargetLimit {
 public:
  explicit TargetLimit(VectorTarget target) { LimitVectorTarget(target); }
  ~TargetLimit() { LimitVectorTarget(VectorTarget::kAvx512); }
};

// Ordinary numbers with zeros, subnormal numbers and infinities among them.
Tensor RandomTensor(DType dtype, int64_t count, std::mt19937* random) {
  Tensor tensor(dtype, Shape({count}));
  std::uniform_real_distribution<double> ordinary(-100, 100);
  std::uniform_int_distribution<int> kind(0, 15);
  for (int64_t i = 0; i < count; ++i) {
    const int k = kind(*random);
    double x = ordinary(*random);
    if (k == 0) x = std::signbit(x) ? -0.0 : 0.0;
    if (k == 1) x = std::copysign(std::numeric_limits<double>::infinity(), x);
    switch (dtype) {
      case DType::kFloat64:
        tensor.as<double>()[i] = k == 2 ? x * 0x1p-1060 : x;
        break;
      case DType::kFloat32:
        tensor.as<float>()[i] = static_cast<float>(k == 2 ? x * 0x1p-140 : x);
        break;
      case DType::kFloat16:
        static_cast<_Float16*>(tensor.data())[i] = static_cast<_Float16>(k == 2 ? x * 0x1p-24 : x);
        break;
      default:
        static_cast<uint16_t*>(tensor.data())[i] = static_cast<uint16_t>(
            std::bit_cast<uint32_t>(static_cast<float>(k == 2 ? x * 0x1p-130 : x)) >> 16);
    }
  }
  return tensor;
}

template <typename T>
void ReduceSingly(const std::vector<TensorView>& terms, int divisor, size_t i, T* quotient) {
  T sum = static_cast<const T*>(terms[0].data)[i];
  for (size_t k = 1; k < terms.size(); ++k) {
    sum = static_cast<T>(sum + static_cast<const T*>(terms[k].data)[i]);
  }
  *quotient = static_cast<T>(sum / static_cast<T>(divisor));
}

// bfloat16 by its definition: through float, rounded to nearest even; NaN quiet.
float FromBrain(uint16_t x) { return std::bit_cast<float>(uint32_t{x} << 16); }
uint16_t ToBrain(float x) {
  const uint32_t bits = std::bit_cast<uint32_t>(x);
  if (std::isnan(x)) return static_cast<uint16_t>(bits >> 16 | 0x40);
  uint32_t upper = bits >> 16;
  const uint32_t lower = bits & 0xffff;
  if (lower > 0x8000 || (lower == 0x8000 && upper % 2 == 1)) ++upper;
  return static_cast<uint16_t>(upper);
}

template <>
void ReduceSingly(const std::vector<TensorView>& terms, int divisor, size_t i, uint16_t* quotient) {
  uint16_t sum = static_cast<const uint16_t*>(terms[0].data)[i];
  for (size_t k = 1; k < terms.size(); ++k) {
    sum = ToBrain(FromBrain(sum) + FromBrain(static_cast<const uint16_t*>(terms[k].data)[i]));
  }
  *quotient = ToBrain(FromBrain(sum) / FromBrain(ToBrain(static_cast<float>(divisor))));
}

template <typename T>
bool IsNan(T x) {
  if constexpr (std::is_same_v<T, uint16_t>) return std::isnan(FromBrain(x));
  return std::isnan(static_cast<double>(x));
}

// The bits, but of a NaN only that it is one.
template <typename T>
bool AreSame(const std::vector<T>& a, const std::vector<T>& b) {
  for (size_t i = 0; i < a.size(); ++i) {
    if (IsNan(a[i]) && IsNan(b[i])) continue;
    if (std::memcmp(&a[i], &b[i], sizeof(T)) != 0) return false;
  }
  return a.size() == b.size();
}

template <typename T>
void CheckDType(DType dtype) {
  std::mt19937 random(7);
  for (const int64_t count : {1, 15, 16, 31, 64, 1000, 1037}) {
    std::vector<Tensor> tensors;
    std::vector<TensorView> terms;
    for (int k = 0; k < 6; ++k) tensors.push_back(RandomTensor(dtype, count, &random));
    for (const Tensor& tensor : tensors) {
      terms.push_back(tensor.view());
      const int divisor = static_cast<int>(terms.size());
      const size_t first = static_cast<size_t>(count) / 3;
      const ElementRange range{first, static_cast<size_t>(count) - first};
      std::vector<T> expected(range.count);
      for (size_t i = 0; i < range.count; ++i) {
        ReduceSingly<T>(terms, divisor, first + i, &expected[i]);
      }
      for (const VectorTarget target : SupportedVectorTargets()) {
        const TargetLimit limit(target);
        CAPTURE(Name(dtype), Name(target), count, terms.size());
        std::vector<T> got(range.count);
        SumAndDivide(terms, divisor, range, got.data());
        CHECK(AreSame(got, expected));
      }
    }
  }
}

TEST_CASE("a range is summed and divided as its single elements are, with every vector target") {
  CheckDType<float>(DType::kFloat32);
  CheckDType<double>(DType::kFloat64);
  CheckDType<_Float16>(DType::kFloat16);
  CheckDType<uint16_t>(DType::kBFloat16);
}

TEST_CASE("a sum may be written over one of the first terms") {
  std::mt19937 random(5);
  std::vector<Tensor> tensors;
  for (int k = 0; k < 6; ++k) tensors.push_back(RandomTensor(DType::kFloat32, 100, &random));
  for (size_t written = 0; written < 4; ++written) {
    for (const VectorTarget target : SupportedVectorTargets()) {
      const TargetLimit limit(target);
      CAPTURE(written, Name(target));
      Tensor sum = tensors[written].Clone();
      std::vector<TensorView> terms;
      for (const Tensor& tensor : tensors) terms.push_back(tensor.view());
      std::vector<float> expected(90);
      SumAndDivide(terms, 3, {7, 90}, expected.data());
      terms[written] = sum.view();
      SumAndDivide(terms, 3, {7, 90}, sum.as<float>().data() + 7);
      CHECK(std::memcmp(sum.as<float>().data() + 7, expected.data(), 90 * sizeof(float)) == 0);
    }
  }
}

TEST_CASE("rows of any width are summed and divided with every vector target") {
  std::mt19937 random(11);
  for (const size_t width : {size_t{1}, size_t{3}, size_t{16}, size_t{67}}) {
    const Tensor term = RandomTensor(DType::kFloat32, static_cast<int64_t>(2 * width), &random);
    const Tensor start = RandomTensor(DType::kFloat32, static_cast<int64_t>(2 * width), &random);
    std::vector<float> expected(2 * width);
    for (size_t i = 0; i < 2 * width; ++i) {
      expected[i] = start.as<float>()[i] + term.as<float>()[i];
      if (i >= width) expected[i] = expected[i] / 3.0f;
    }
    for (const VectorTarget target : SupportedVectorTargets()) {
      const TargetLimit limit(target);
      CAPTURE(Name(target), width);
      std::vector<float> sum(start.as<float>().begin(), start.as<float>().end());
      const float* from = term.as<float>().data();
      AddRows(DType::kFloat32, width, {{sum.data(), from}, {sum.data() + width, from + width}});
      DivideRows(DType::kFloat32, width, sum.data(), {1, 3});
      CHECK(AreSame(sum, expected));
    }
  }
}

TEST_CASE("the baseline is always there, and a limit holds until it is lifted") {
  const std::vector<VectorTarget> targets = SupportedVectorTargets();
  CHECK(targets.front() == VectorTarget::kBaseline);
  {
    const TargetLimit limit(VectorTarget::kBaseline);
    CHECK(ChosenVectorTarget() == VectorTarget::kBaseline);
  }
  CHECK(ChosenVectorTarget() == targets.back());
}

TEST_CASE("a non-temporal copy is a copy, wherever it begins and ends") {
  std::vector<char> from(400);
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i * 7 + 1);
  for (size_t begin = 0; begin < 70; begin += 3) {
    for (const size_t bytes :
         {size_t{0}, size_t{1}, size_t{63}, size_t{64}, size_t{129}, size_t{300}}) {
      CAPTURE(begin, bytes);
      std::vector<char> to(from.size(), 'x');
      NonTemporalCopy(to.data() + begin, from.data() + 5, bytes);
      FlushStreams();
      std::vector<char> expected(from.size(), 'x');
      std::memcpy(expected.data() + begin, from.data() + 5, bytes);
      CHECK(to == expected);
    }
  }
}

}  // namespace
}  // namespace lockstep
