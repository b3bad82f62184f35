#include "common/optimizer/clipping.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <vector>

#include "common/optimizer/clipping_element.h"
#include "common/optimizer/element_loops.h"

namespace lockstep {
namespace {

// In double, whatever the elements are: so the order of the sum does not show in float32.
template <typename T>
double SumOfSquares(std::span<const T> elements) {
  std::array<double, 8> lanes = {};
  const size_t whole = elements.size() / lanes.size() * lanes.size();
  for (size_t i = 0; i < whole; i += lanes.size()) {
    for (size_t lane = 0; lane < lanes.size(); ++lane) {
      const double x = elements[i + lane];
      lanes[lane] += x * x;
    }
  }
  double sum = 0;
  for (const double lane : lanes) sum += lane;
  for (size_t i = whole; i < elements.size(); ++i) {
    const double x = elements[i];
    sum += x * x;
  }
  return sum;
}

// Sums, root and scale in Norm, float or double.
template <typename Norm>
Norm NormOf(absl::Span<const MutableTensorView> tensors) {
  Norm halves = 0;
  for (const MutableTensorView& tensor : tensors) {
    DispatchFloat(tensor.dtype, [&]<typename T>() {
      halves += static_cast<Norm>(SumOfSquares(std::span<const T>(tensor.as<T>())) / 2);
    });
  }
  return std::sqrt(halves * 2);
}

bool IsDouble(absl::Span<const MutableTensorView> tensors) {
  return std::any_of(tensors.begin(), tensors.end(), [](const MutableTensorView& tensor) {
    return tensor.dtype == DType::kFloat64;
  });
}

double GlobalNormOf(absl::Span<const MutableTensorView> tensors) {
  return IsDouble(tensors) ? NormOf<double>(tensors) : NormOf<float>(tensors);
}

}  // namespace

void ClipByValue(float least, float most, MutableTensorView tensor) {
  DispatchFloat(tensor.dtype, [&]<typename T>() {
    ForEachElement(tensor.num_elements(),
                   [least = T{least}, most = T{most}, x = tensor.as<T>().data()](size_t i) {
                     x[i] = ClippedValue(x[i], least, most);
                   });
  });
}

void ClipByNorm(float limit, MutableTensorView tensor) {
  DispatchFloat(tensor.dtype, [&]<typename T>() {
    const T norm = std::sqrt(static_cast<T>(SumOfSquares(std::span<const T>(tensor.as<T>()))));
    const T divisor = NormDivisor(norm, T{limit});
    ForEachElement(tensor.num_elements(), [limit = T{limit}, divisor, x = tensor.as<T>().data()](
                                              size_t i) { x[i] = x[i] * limit / divisor; });
  });
}

double ClipByGlobalNorm(float limit, absl::Span<const MutableTensorView> tensors) {
  const double norm = GlobalNormOf(tensors);
  const double scale = IsDouble(tensors) ? GlobalNormScale<double>(norm, limit)
                                         : GlobalNormScale(static_cast<float>(norm), limit);
  for (const MutableTensorView& tensor : tensors) {
    DispatchFloat(tensor.dtype, [&]<typename T>() {
      ForEachElement(
          tensor.num_elements(),
          [scale = static_cast<T>(scale), x = tensor.as<T>().data()](size_t i) { x[i] *= scale; });
    });
  }
  return norm;
}

void Clip(const ClippingRule& rule, absl::Span<const MutableTensorView> tensors) {
  switch (rule.kind) {
    case ClippingKind::kNone:
      return;
    case ClippingKind::kValue:
      for (const MutableTensorView& tensor : tensors) ClipByValue(-rule.limit, rule.limit, tensor);
      return;
    case ClippingKind::kNorm:
      for (const MutableTensorView& tensor : tensors) ClipByNorm(rule.limit, tensor);
      return;
    case ClippingKind::kGlobalNorm:
      ClipByGlobalNorm(rule.limit, tensors);
      return;
  }
}

}  // namespace lockstep
