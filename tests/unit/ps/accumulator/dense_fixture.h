// Common code of the dense accumulator's tests: tensors of any element type from floats and back,
// and an accumulator with its answered takes.
#pragma once

#include <bit>
#include <catch2/catch.hpp>
#include <cstdint>
#include <utility>
#include <vector>

#include "tests/reference/dense_accumulator.h"
#include "tests/unit/ps/accumulator/take_log.h"

namespace lockstep::reference::test {

using Accumulator = WaitingAccumulator<TensorView, DenseGradients>;

inline _Float16 ToHalf(float value) { return static_cast<_Float16>(value); }

inline Tensor Of(const Shape& shape, const std::vector<float>& values,
                 DType dtype = DType::kFloat32) {
  Tensor tensor(dtype, shape);
  for (size_t i = 0; i < values.size(); ++i) {
    switch (dtype) {
      case DType::kFloat32:
        static_cast<float*>(tensor.data())[i] = values[i];
        break;
      case DType::kFloat64:
        static_cast<double*>(tensor.data())[i] = values[i];
        break;
      case DType::kFloat16:
        static_cast<_Float16*>(tensor.data())[i] = ToHalf(values[i]);
        break;
      default:  // bfloat16, for values that it has exactly
        static_cast<uint16_t*>(tensor.data())[i] = std::bit_cast<uint32_t>(values[i]) >> 16;
    }
  }
  return tensor;
}

inline Tensor Of(float value, DType dtype = DType::kFloat32) {
  return Of(Shape({1}), {value}, dtype);
}

inline std::vector<float> Values(const Tensor& tensor) {
  std::vector<float> values;
  for (int64_t i = 0; i < tensor.num_elements(); ++i) {
    switch (tensor.dtype()) {
      case DType::kFloat32:
        values.push_back(static_cast<const float*>(tensor.data())[i]);
        break;
      case DType::kFloat64:
        values.push_back(static_cast<float>(static_cast<const double*>(tensor.data())[i]));
        break;
      case DType::kFloat16:
        values.push_back(static_cast<float>(static_cast<const _Float16*>(tensor.data())[i]));
        break;
      default:
        values.push_back(
            std::bit_cast<float>(uint32_t{static_cast<const uint16_t*>(tensor.data())[i]} << 16));
    }
  }
  return values;
}

// An accumulator, by default of shape [1], and the results of its takes.
class DenseFixture {
 public:
  explicit DenseFixture(Reduction reduction = Reduction::kMean, DType dtype = DType::kFloat32,
                        PartialShape shape = PartialShape(Shape({1})))
      : accumulator(dtype, std::move(shape), reduction), dtype_(dtype) {}

  absl::Status Apply(const Tensor& gradient, int64_t local_step = 0) {
    auto applied = accumulator.Apply(GlobalStep(local_step), gradient.view());
    if (!applied.ok()) return applied.status();
    was_accepted = applied->accepted;
    takes_.RecordTakes(std::move(applied->finished));
    return absl::OkStatus();
  }
  void Apply(float gradient, int64_t local_step = 0) {
    REQUIRE(Apply(Of(gradient, dtype_), local_step).ok());
  }

  TakeId Start(int required) { return takes_.Start(required); }
  void Cancel(TakeId id) { takes_.Cancel(id); }

  // A take that must be satisfied at once.
  std::vector<float> Take(int required) {
    const TakeId id = Start(required);
    REQUIRE(IsFinished(id));
    return ResultOf(id);
  }

  bool IsFinished(TakeId id) const { return takes_.IsFinished(id); }
  absl::Status StatusOf(TakeId id) const { return takes_.StatusOf(id); }
  std::vector<float> ResultOf(TakeId id) const { return Values(takes_.ResultOf(id).Reduced()); }
  int CountOf(TakeId id) const { return takes_.CountOf(id); }

  DenseAccumulator accumulator;
  bool was_accepted = false;

 private:
  const DType dtype_;
  TakeLog<Accumulator> takes_{&accumulator};
};

}  // namespace lockstep::reference::test
