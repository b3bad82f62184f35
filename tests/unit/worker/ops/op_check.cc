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

// Those few outputs that rounding has taken to the other side of a relu have no common gradient.
void LeaveOutKinks(const Array& got, const Array& wanted, Array* weights) {
  int64_t left_out = 0;
  for (int64_t i = 0; i < wanted.size(); ++i) {
    if ((got.values[i] > 0) == (wanted.values[i] > 0)) continue;
    weights->values[i] = 0;
    ++left_out;
  }
  CHECK(left_out <= 1 + wanted.size() / 100);
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

Array TestOps::Rounded(Array array) const {
  if (type() == DType::kFloat32) return array;
  for (double& value : array.values) {
    value = double{static_cast<float>(BFloat16(static_cast<float>(value)))};
  }
  return array;
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

MutableTensorView OpRun::Upload(int place, const Tensor& host, DType type) {
  const Tensor* from = &host;
  if (type != DType::kFloat32) {
    from = &rounded_.emplace_back(Rounded{Tensor(type, host.shape()), nullptr}).tensor;
    std::ranges::transform(host.as<float>(), rounded_.back().tensor.as<BFloat16>().begin(),
                           [](float value) { return BFloat16(value); });
  }
  REQUIRE(staging_.ToDevice(place, from->view(), ops_.stream()).ok());
  return *staging_.OnDevice(
      place, {type, host.shape(), const_cast<std::byte*>(from->view().bytes().data())});
}

std::vector<MutableTensorView> OpRun::UploadAll(const std::vector<Tensor>& hosts, int first_place,
                                                DType type) {
  std::vector<MutableTensorView> views;
  for (const Tensor& host : hosts) {
    views.push_back(Upload(first_place + static_cast<int>(views.size()), host, type));
  }
  return views;
}

void OpRun::Download(const MutableTensorView& view, Tensor& host) {
  if (view.data == nullptr) return;
  if (view.dtype == DType::kFloat32) return Staging::CopyToHost(view, host.view(), ops_.stream());
  Rounded& rounded = rounded_.emplace_back(Rounded{Tensor(view.dtype, view.shape), &host});
  Staging::CopyToHost(view, rounded.tensor.view(), ops_.stream());
}

void OpRun::Download(const std::vector<MutableTensorView>& views, std::vector<Tensor>& hosts) {
  for (size_t i = 0; i < views.size(); ++i) Download(views[i], hosts[i]);
}

void OpRun::Finish() {
  REQUIRE(ops_.Finish().ok());
  for (Rounded& rounded : rounded_) {
    if (rounded.to == nullptr) continue;
    std::ranges::transform(rounded.tensor.as<BFloat16>(), rounded.to->as<float>().begin(),
                           [](BFloat16 value) { return static_cast<float>(value); });
  }
  rounded_.clear();
}

Array OpRun::Forward(Op& op, Mode mode, uint64_t random_key) {
  const std::vector<MutableTensorView> from = UploadAll(inputs, inputs_at_, ops_.type());
  const std::vector<MutableTensorView> of = UploadAll(variables, variables_at_, DType::kFloat32);
  input_views_.assign(from.begin(), from.end());
  variable_views_.assign(of.begin(), of.end());
  output_view_ = Upload(output_at_, output, ops_.type());
  std::vector<int64_t> most_rows;
  for (const std::span<const int64_t> held : rows) {
    most_rows.push_back(static_cast<int64_t>(held.size()));
  }
  row_lists_ = *RowLists::Create(most_rows, ops_.device());
  REQUIRE(row_lists_.Bring(rows, ops_.stream()).ok());
  const TensorView key =
      *staging_.ToDevice(random_key_at_, {DType::kInt64, Shape({1}), &random_key}, ops_.stream());
  const Op::ForwardArgs args{.mode = mode,
                             .random_key = static_cast<const uint64_t*>(key.data),
                             .inputs = input_views_,
                             .variables = variable_views_,
                             .output = output_view_,
                             .rows = row_lists_.on_device()};
  REQUIRE(op.Forward(args, ops_.stream()).ok());
  Download(output_view_, output);
  Finish();
  return reference::ToArray(output.view());
}

Array OpRun::ForwardOver(Op& op) {
  const std::vector<MutableTensorView> from = UploadAll(inputs, inputs_at_, ops_.type());
  input_views_.assign(from.begin(), from.end());
  const Op::ForwardArgs args{.inputs = input_views_, .output = from[0]};
  REQUIRE(op.Forward(args, ops_.stream()).ok());
  Download(from[0], inputs[0]);
  Finish();
  return reference::ToArray(inputs[0].view());
}

void OpRun::Backward(Op& op, const Array& output_gradient, bool want_inputs) {
  const Tensor used_up = reference::ToTensor(output_gradient);
  const MutableTensorView to_use_up = Upload(output_gradient_at_, used_up, ops_.type());
  std::vector<MutableTensorView> to_inputs =
      UploadAll(input_gradients, input_gradients_at_, ops_.type());
  if (!want_inputs) {
    for (MutableTensorView& gradient : to_inputs) gradient.data = nullptr;
  }
  const std::vector<MutableTensorView> to_variables =
      UploadAll(variable_gradients, variable_gradients_at_, DType::kFloat32);
  const Op::BackwardArgs args{input_views_, variable_views_, output_view_,
                              to_use_up,    to_inputs,       to_variables};
  REQUIRE(op.Backward(args, ops_.stream()).ok());
  Download(to_inputs, input_gradients);
  Download(to_variables, variable_gradients);
  Finish();
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
  for (Array& input : inputs) input = ops.Rounded(std::move(input));
  for (Array& variable : variables) variable = ops.Rounded(std::move(variable));
  const Array wanted = reference(inputs, variables);
  OpRun run(ops, inputs, variables, wanted.dims);
  const Array got = run.Forward(op, Mode::kTraining);
  CHECK(reference::Distance(got, wanted) < test::ToleranceOfTestDevice());

  // Any fixed weights of the outputs make one number of them, whose gradient Backward gives.
  Array weights = ops.Rounded(Array::Random(wanted.dims, "weights"));
  if (ops.type() != DType::kFloat32) LeaveOutKinks(got, wanted, &weights);
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
