#include "tests/reference/array.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <numeric>
#include <utility>

#include "common/base/philox.h"

namespace lockstep::reference {

Array::Array(std::vector<int64_t> extents)
    : dims(std::move(extents)),
      values(std::accumulate(dims.begin(), dims.end(), int64_t{1}, std::multiplies<>())) {}

Array Array::Random(std::vector<int64_t> dims, absl::string_view name) {
  Array array(std::move(dims));
  const Philox generator(20, name);
  for (int64_t i = 0; i < array.size(); ++i) {
    array.values[i] = 2 * UniformFloat(generator.At(i)[0]) - 1;
  }
  return array;
}

Tensor ToTensor(const Array& array) {
  Tensor tensor(DType::kFloat32, Shape(absl::MakeConstSpan(array.dims)));
  std::copy(array.values.begin(), array.values.end(), tensor.as<float>().begin());
  return tensor;
}

Array ToArray(TensorView tensor) {
  Array array(std::vector<int64_t>(tensor.shape.dims().begin(), tensor.shape.dims().end()));
  const std::span<const float> values = tensor.as<float>();
  std::copy(values.begin(), values.end(), array.values.begin());
  return array;
}

double Distance(const Array& got, const Array& wanted) {
  if (got.size() != wanted.size()) return std::numeric_limits<double>::infinity();
  double largest = 1;
  double distance = 0;
  for (int64_t i = 0; i < wanted.size(); ++i) {
    largest = std::max(largest, std::abs(wanted.values[i]));
    const double difference = std::abs(got.values[i] - wanted.values[i]);
    // Written so that NaN counts as far away.
    if (!(difference <= distance)) distance = difference;
  }
  return distance / largest;
}

}  // namespace lockstep::reference
