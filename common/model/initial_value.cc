#include "common/model/initial_value.h"

#include <algorithm>
#include <cmath>
#include <numbers>
#include <vector>

#include "common/base/check.h"
#include "common/base/philox.h"
#include "common/model/orthogonal.h"

namespace lockstep {
namespace {

// Standard deviation of the standard normal distribution cut off at +-2.
constexpr double kTruncatedStddev = 0.87962566103423978;
constexpr double kBound = 2.0;

struct Fans {
  double in = 1;
  double out = 1;
};

Fans FansOf(const Shape& shape) {
  const int rank = shape.rank();
  if (rank == 0) return {};
  double field = 1;
  for (int axis = 0; axis < rank - 2; ++axis) field *= static_cast<double>(shape.dim(axis));
  const double out = static_cast<double>(shape.dim(rank - 1));
  const double in = rank == 1 ? out : static_cast<double>(shape.dim(rank - 2));
  return {std::max(1.0, in * field), std::max(1.0, out * field)};
}

// Uniform in [-1, 1): word i % 4 of block i / 4, lane 0.
double UniformElement(const Philox& random, uint64_t i) {
  return 2.0 * UniformFloat(random.At(i / 4)[i % 4]) - 1.0;
}

// Standard normal: Box and Muller's cosine of the first two words of block i, lane `attempt`.
double NormalElement(const Philox& random, uint64_t i, uint64_t attempt) {
  const Philox::Block block = random.At(i, attempt);
  const double u = (block[0] + 1.0) * 0x1.0p-32;  // in (0, 1]: its logarithm is finite
  const double v = block[1] * 0x1.0p-32;
  return std::sqrt(-2.0 * std::log(u)) * std::cos(2.0 * std::numbers::pi * v);
}

// Standard normal, redrawn outside +-2. One attempt in 22 is redrawn; the stream of one element
// never touches another's.
double TruncatedNormalElement(const Philox& random, uint64_t i) {
  for (uint64_t attempt = 0;; ++attempt) {
    const double z = NormalElement(random, i, attempt);
    if (std::abs(z) <= kBound) return z;
  }
}

template <typename T>
void Fill(const Initializer& initializer, const Philox& random, const Shape& shape, uint64_t first,
          std::span<T> value) {
  const auto each = [&](auto element) {
    for (size_t i = 0; i < value.size(); ++i) value[i] = static_cast<T>(element(first + i));
  };
  switch (initializer.kind_case()) {
    case Initializer::KIND_NOT_SET:
    case Initializer::kZeros:
      return each([](uint64_t) { return 0.0; });
    case Initializer::kConstant:
      return each([c = initializer.constant().value()](uint64_t) { return c; });
    case Initializer::kTruncatedNormal: {
      const float stddev = initializer.truncated_normal().stddev();
      const double scale = stddev == 0 ? 0.1 : stddev;
      return each([&](uint64_t i) { return scale * TruncatedNormalElement(random, i); });
    }
    case Initializer::kGlorot: {
      const Fans fans = FansOf(shape);
      const double limit = std::sqrt(6.0 / (fans.in + fans.out));
      return each([&](uint64_t i) { return limit * UniformElement(random, i); });
    }
    case Initializer::kHe: {
      const double scale = std::sqrt(2.0 / FansOf(shape).in) / kTruncatedStddev;
      return each([&](uint64_t i) { return scale * TruncatedNormalElement(random, i); });
    }
    case Initializer::kOrthogonal: {
      const int64_t columns = shape.rank() == 0 ? 1 : std::max<int64_t>(shape.dims().back(), 1);
      const std::vector<double> matrix =
          OrthogonalMatrix(shape.num_elements() / columns, columns,
                           [&](uint64_t i) { return NormalElement(random, i, 0); });
      return each([&](uint64_t i) { return matrix[i]; });
    }
    case Initializer::kUnitForgetBias: {
      const uint64_t quarter = shape.num_elements() / 4;
      return each([&](uint64_t i) { return i >= quarter && i < 2 * quarter ? 1.0 : 0.0; });
    }
  }
}

// `value` is elements of a variable of shape `shape`, from element `first` on.
void FillElements(const Initializer& initializer, const Philox& random, const Shape& shape,
                  uint64_t first, MutableTensorView value) {
  if (value.dtype == DType::kFloat64) {
    Fill(initializer, random, shape, first, value.as<double>());
  } else {
    Fill(initializer, random, shape, first, value.as<float>());
  }
}

}  // namespace

void FillInitialValue(const Initializer& initializer, uint64_t seed, absl::string_view name,
                      MutableTensorView value) {
  FillElements(initializer, Philox(seed, name), value.shape, 0, value);
}

void FillInitialRows(const Initializer& initializer, uint64_t seed, absl::string_view name,
                     const Shape& whole, int64_t first_row, MutableTensorView value) {
  LOCKSTEP_CHECK(whole.rank() > 0 && whole.rank() == value.shape.rank());
  LOCKSTEP_CHECK(std::ranges::equal(whole.dims().subspan(1), value.shape.dims().subspan(1)));
  LOCKSTEP_CHECK(first_row >= 0 && first_row <= whole.dim(0) - value.shape.dim(0));
  int64_t row_elements = 1;
  for (const int64_t extent : whole.dims().subspan(1)) row_elements *= extent;
  FillElements(initializer, Philox(seed, name), whole, first_row * row_elements, value);
}

}  // namespace lockstep
