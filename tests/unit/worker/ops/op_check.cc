#include "tests/unit/worker/ops/op_check.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <limits>

#include "tests/reference/differences.h"
#include "tests/support/test_device.h"

namespace lockstep::worker {
namespace {

using reference::Array;

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
  CHECK(reference::Distance(gradient, wanted) < test::ToleranceOfTestDevice());
}

}  // namespace

TestOps::TestOps(int threads) : TestOps(test::MakeTestDevice(threads), test::OpsOfTestDevice()) {}

TestOps::TestOps(std::shared_ptr<Device> device, const OpTable& table)
    : device_(std::move(device)), table_(table) {
  device_->MakeCurrent();
  context_ = *table_.CreateContext(device_.get());
  stream_ = *device_->CreateStream({});
  finished_ = *device_->CreateEvent();
}

absl::Status TestOps::Finish() {
  stream_->Record(finished_.get());
  return finished_->Wait();
}

std::unique_ptr<Op> Made(OpTable::MadeOr<Op> op) {
  REQUIRE(op.ok());
  return *std::move(op);
}

OpRun::OpRun(TestOps& ops, const std::vector<Array>& input_arrays,
             const std::vector<Array>& variable_arrays, const std::vector<int64_t>& output_dims)
    : output(Unset(Shape(absl::MakeConstSpan(output_dims)))), ops_(ops), staging_(ops.device()) {
  for (const Array& input : input_arrays) inputs.push_back(reference::ToTensor(input));
  for (const Array& variable : variable_arrays) variables.push_back(reference::ToTensor(variable));
  for (const Tensor& input : inputs) input_gradients.push_back(Unset(input.shape()));
  for (const Tensor& variable : variables) variable_gradients.push_back(Unset(variable.shape()));
  const auto add = [this](const std::vector<Tensor>& tensors) {
    const int first = staging_.AddPlace(0);
    for (const Tensor& tensor : tensors) staging_.AddPlace(tensor.num_bytes());
    return first + 1;
  };
  inputs_at_ = add(inputs);
  variables_at_ = add(variables);
  output_at_ = staging_.AddPlace(output.num_bytes());
  random_key_at_ = staging_.AddPlace(sizeof(uint64_t));
  output_gradient_at_ = staging_.AddPlace(output.num_bytes());
  input_gradients_at_ = add(input_gradients);
  variable_gradients_at_ = add(variable_gradients);
  REQUIRE(staging_.Allocate().ok());
}

TensorView OpRun::Upload(int place, const Tensor& host) {
  return *staging_.ToDevice(place, host.view(), ops_.stream());
}

MutableTensorView OpRun::Upload(int place, Tensor& host) {
  REQUIRE(staging_.ToDevice(place, host.view(), ops_.stream()).ok());
  return *staging_.OnDevice(place, host.view());
}

void OpRun::UploadAll(const std::vector<Tensor>& hosts, int first_place,
                      std::vector<TensorView>* views) {
  views->clear();
  for (const Tensor& host : hosts) {
    views->push_back(Upload(first_place + static_cast<int>(views->size()), host));
  }
}

std::vector<MutableTensorView> OpRun::UploadGradients(std::vector<Tensor>& hosts, int first_place) {
  std::vector<MutableTensorView> views;
  for (Tensor& host : hosts) {
    views.push_back(Upload(first_place + static_cast<int>(views.size()), host));
  }
  return views;
}

void OpRun::Download(const std::vector<MutableTensorView>& views, std::vector<Tensor>& hosts) {
  for (size_t i = 0; i < views.size(); ++i) {
    if (views[i].data != nullptr) Staging::CopyToHost(views[i], hosts[i].view(), ops_.stream());
  }
}

Array OpRun::Forward(Op& op, Mode mode, uint64_t random_key) {
  UploadAll(inputs, inputs_at_, &input_views_);
  UploadAll(variables, variables_at_, &variable_views_);
  output_view_ = Upload(output_at_, output);
  const TensorView key =
      *staging_.ToDevice(random_key_at_, {DType::kInt64, Shape({1}), &random_key}, ops_.stream());
  const Op::ForwardArgs args{.mode = mode,
                             .random_key = static_cast<const uint64_t*>(key.data),
                             .inputs = input_views_,
                             .variables = variable_views_,
                             .output = output_view_,
                             .rows = rows};
  REQUIRE(op.Forward(args, ops_.stream()).ok());
  Staging::CopyToHost(output_view_, output.view(), ops_.stream());
  REQUIRE(ops_.Finish().ok());
  return reference::ToArray(output.view());
}

Array OpRun::ForwardOver(Op& op) {
  UploadAll(inputs, inputs_at_, &input_views_);
  const MutableTensorView first = *staging_.OnDevice(inputs_at_, inputs[0].view());
  const Op::ForwardArgs args{.inputs = input_views_, .output = first};
  REQUIRE(op.Forward(args, ops_.stream()).ok());
  Staging::CopyToHost(first, inputs[0].view(), ops_.stream());
  REQUIRE(ops_.Finish().ok());
  return reference::ToArray(inputs[0].view());
}

void OpRun::Backward(Op& op, const Array& output_gradient, bool want_inputs) {
  Tensor used_up = reference::ToTensor(output_gradient);
  const MutableTensorView to_use_up = Upload(output_gradient_at_, used_up);
  std::vector<MutableTensorView> to_inputs = UploadGradients(input_gradients, input_gradients_at_);
  if (!want_inputs) {
    for (MutableTensorView& gradient : to_inputs) gradient.data = nullptr;
  }
  const std::vector<MutableTensorView> to_variables =
      UploadGradients(variable_gradients, variable_gradients_at_);
  const Op::BackwardArgs args{input_views_, variable_views_, output_view_,
                              to_use_up,    to_inputs,       to_variables};
  REQUIRE(op.Backward(args, ops_.stream()).ok());
  Download(to_inputs, input_gradients);
  Download(to_variables, variable_gradients);
  REQUIRE(ops_.Finish().ok());
}

LossRun::LossRun(TestOps& ops, Loss& loss, const Tensor& outputs, const Tensor& labels)
    : ops_(ops), loss_(loss), outputs_(outputs), labels_(labels) {}

float LossRun::Train(Tensor* gradient) {
  Tensor mean = Unset(Shape({1}));
  Run(&Loss::Train, gradient, &mean);
  return mean.as<float>()[0];
}

std::vector<double> LossRun::Evaluate() {
  Tensor sums(DType::kFloat64, Shape({Loss::kNumSums}));
  Run(&Loss::Evaluate, nullptr, &sums);
  return {sums.as<double>().begin(), sums.as<double>().end()};
}

Tensor LossRun::Predict() {
  Tensor predictions = Unset(outputs_.shape());
  Run(&Loss::Predict, nullptr, &predictions);
  return predictions;
}

void LossRun::Run(absl::Status (Loss::*call)(const Loss::Args&, Stream*), Tensor* gradient,
                  Tensor* host) {
  Staging staging(ops_.device());
  const int outputs = staging.AddPlace(outputs_.num_bytes());
  const int labels = staging.AddPlace(labels_.num_bytes());
  const int gradients = staging.AddPlace(outputs_.num_bytes());
  const int result = staging.AddPlace(host->num_bytes());
  REQUIRE(staging.Allocate().ok());
  Loss::Args args;
  args.outputs = *staging.ToDevice(outputs, outputs_.view(), ops_.stream());
  args.labels = *staging.ToDevice(labels, labels_.view(), ops_.stream());
  if (gradient != nullptr) args.gradient = *staging.OnDevice(gradients, gradient->view());
  args.result = *staging.OnDevice(result, host->view());
  REQUIRE((loss_.*call)(args, ops_.stream()).ok());
  if (gradient != nullptr) Staging::CopyToHost(args.gradient, gradient->view(), ops_.stream());
  Staging::CopyToHost(args.result, host->view(), ops_.stream());
  REQUIRE(ops_.Finish().ok());
}

void CheckOp(TestOps& ops, Op& op, std::vector<Array> inputs, std::vector<Array> variables,
             size_t differentiated, const ReferenceFunction& reference, bool of_inputs) {
  const Array wanted = reference(inputs, variables);
  OpRun run(ops, inputs, variables, wanted.dims);
  CHECK(reference::Distance(run.Forward(op, Mode::kTraining), wanted) <
        test::ToleranceOfTestDevice());

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
