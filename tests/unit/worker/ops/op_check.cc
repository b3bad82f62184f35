#include "tests/unit/worker/ops/op_check.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "tests/reference/differences.h"
#include "worker/ops/cpu/op_factory.h"

namespace lockstep::worker {
namespace {

using reference::Array;

// Of the largest magnitude: sums of some hundreds of floats.
constexpr double kTolerance = 1e-5;
// Coordinates of each tensor whose derivative is taken.
constexpr int64_t kCoordinates = 24;

Tensor Unset(const Shape& shape) {
  Tensor tensor(DType::kFloat32, shape);
  std::ranges::fill(tensor.as<float>(), std::numeric_limits<float>::quiet_NaN());
  return tensor;
}

// Moves elements of `at` (one of the reference's operands) and compares.
template <typename Objective>
void CheckGradient(const Tensor& got, Array& at, const Objective& objective) {
  Array gradient(std::vector<int64_t>{0});
  Array wanted(std::vector<int64_t>{0});
  for (int64_t i : reference::SpreadIndices(at.size(), kCoordinates)) {
    gradient.values.push_back(got.as<float>()[i]);
    wanted.values.push_back(reference::Derivative(at.values[i], objective));
  }
  CHECK(reference::Distance(gradient, wanted) < kTolerance);
}

}  // namespace

TestOps::TestOps(int threads) : device_(threads), factory_(cpu::MakeOpFactory(&device_)) {
  device_.MakeCurrent();
}

OpRun::OpRun(const std::vector<Array>& input_arrays, const std::vector<Array>& variable_arrays,
             const std::vector<int64_t>& output_dims)
    : output(Unset(Shape(absl::MakeConstSpan(output_dims)))) {
  for (const Array& input : input_arrays) inputs.push_back(reference::ToTensor(input));
  for (const Array& variable : variable_arrays) variables.push_back(reference::ToTensor(variable));
  for (const Tensor& input : inputs) {
    input_gradients.push_back(Unset(input.shape()));
    input_views_.push_back(input.view());
  }
  for (const Tensor& variable : variables) {
    variable_gradients.push_back(Unset(variable.shape()));
    variable_views_.push_back(variable.view());
  }
}

Array OpRun::Forward(Op& op, Mode mode, uint64_t random_key) {
  op.Forward({mode, random_key, input_views_, variable_views_, output.view(), rows});
  return reference::ToArray(output.view());
}

void OpRun::Backward(Op& op, const Array& output_gradient, bool want_inputs) {
  std::vector<MutableTensorView> to_inputs;
  for (Tensor& gradient : input_gradients) {
    to_inputs.push_back(gradient.view());
    if (!want_inputs) to_inputs.back().data = nullptr;
  }
  std::vector<MutableTensorView> to_variables;
  for (Tensor& gradient : variable_gradients) to_variables.push_back(gradient.view());
  Tensor used_up = reference::ToTensor(output_gradient);
  op.Backward(
      {input_views_, variable_views_, output.view(), used_up.view(), to_inputs, to_variables});
}

void CheckOp(Op& op, std::vector<Array> inputs, std::vector<Array> variables, size_t differentiated,
             const ReferenceFunction& reference, bool of_inputs) {
  const Array wanted = reference(inputs, variables);
  OpRun run(inputs, variables, wanted.dims);
  CHECK(reference::Distance(run.Forward(op, Mode::kTraining), wanted) < kTolerance);

  // Any fixed weights of the outputs make one number of them, whose gradient Backward gives.
  const Array weights = Array::Random(wanted.dims, "weights");
  run.Backward(op, weights, of_inputs);
  const auto objective = [&] {
    const Array y = reference(inputs, variables);
    double sum = 0;
    for (int64_t i = 0; i < y.size(); ++i) sum += weights.values[i] * y.values[i];
    return sum;
  };
  for (size_t i = 0; of_inputs && i < inputs.size(); ++i) {
    INFO("gradient of input " << i);
    CheckGradient(run.input_gradients[i], inputs[i], objective);
  }
  for (size_t i = 0; i < differentiated; ++i) {
    INFO("gradient of variable " << i);
    CheckGradient(run.variable_gradients[i], variables[i], objective);
  }
}

}  // namespace lockstep::worker
