// Values on devices, made of a few numbers.
#pragma once

#include <deque>
#include <initializer_list>
#include <vector>

#include "worker/collective/cross_tower_ops.h"

namespace lockstep::worker::test {

inline DeviceId Cpu(int index, int worker = 0) { return {worker, DeviceKind::kCpu, index}; }

// Keeps the memory of what it makes.
class Values {
 public:
  Value Dense(std::vector<float> elements) {
    Tensor& tensor =
        tensors_.emplace_back(DType::kFloat32, Shape({static_cast<int64_t>(elements.size())}));
    std::copy(elements.begin(), elements.end(), tensor.as<float>().begin());
    return tensor.view();
  }

  // Slices of width 2.
  Value Sparse(std::vector<int64_t> indices, std::vector<float> elements) {
    Tensor& tensor = tensors_.emplace_back(DType::kFloat32,
                                           Shape({static_cast<int64_t>(elements.size() / 2), 2}));
    std::copy(elements.begin(), elements.end(), tensor.as<float>().begin());
    indices_.push_back(std::move(indices));
    return IndexedSlicesView{indices_.back(), tensor.view()};
  }

  // cpu:0 has the first value, cpu:1 the second, ...
  PerDevice OnCpus(std::vector<Value> values) {
    PerDevice by_device;
    for (size_t i = 0; i < values.size(); ++i) {
      by_device.values.push_back({Cpu(static_cast<int>(i)), {values[i]}});
    }
    return by_device;
  }

 private:
  std::deque<Tensor> tensors_;
  std::deque<std::vector<int64_t>> indices_;
};

inline std::vector<float> ElementsOf(const OwnedValue& value) {
  const auto* dense = std::get_if<Tensor>(&value);
  const Tensor& tensor = dense != nullptr ? *dense : std::get<IndexedSlices>(value).values;
  return {tensor.as<float>().begin(), tensor.as<float>().end()};
}

inline std::vector<int64_t> IndicesOf(const OwnedValue& value) {
  return std::get<IndexedSlices>(value).indices;
}

}  // namespace lockstep::worker::test
