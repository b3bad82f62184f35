#include "worker/ops/batch_norm.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/reference/layers.h"
#include "tests/support/test_device.h"
#include "tests/unit/worker/ops/op_check.h"

namespace lockstep::worker {
namespace {

using reference::Array;

constexpr float kEpsilon = 0.001f;
constexpr float kMomentum = 0.9f;

// gamma, beta, moving_mean, moving_variance.
std::vector<Array> Statistics(int64_t channels) {
  std::vector<Array> variables;
  for (const char* name : {"gamma", "beta", "mean", "variance"}) {
    variables.push_back(Array::Random({channels}, name));
  }
  for (double& variance : variables[3].values) variance = 1.5 + variance;
  return variables;
}

void CheckBatchNorm(std::vector<int64_t> dims, bool relu) {
  INFO("rank " << dims.size() << ", batch " << dims[0] << ", channels " << dims.back() << ", relu "
               << relu);
  TestOps ops(2);
  Array x = Array::Random(dims, "x");
  // Off centre: the variance must not be computed as a difference of large numbers.
  for (double& value : x.values) value = value * 2 + 3;
  x = ops.Rounded(std::move(x));
  const int64_t channels = dims.back();
  const BatchNormOptions options{{.batch = dims[0]}, x.rows() / dims[0], channels,
                                 kMomentum,          kEpsilon,           relu};
  const std::unique_ptr<Op> op = Made(ops.Make(options));
  const std::vector<Array> variables = Statistics(channels);
  const auto cut = [&](Array y) { return relu ? reference::Relu(std::move(y)) : y; };
  CheckOp(
      ops, *op, {x}, variables, 2, [&](const std::vector<Array>& in, const std::vector<Array>& v) {
        return cut(reference::Normalise(in[0], reference::MomentsOf(in[0]), v[0], v[1], kEpsilon));
      });

  OpRun run(ops, {x}, variables, dims);
  run.Forward(*op, Mode::kTraining);
  run.Backward(*op, Array::Random(dims, "gradient"));
  const reference::Moments moments = reference::MomentsOf(x);
  for (int statistic : {2, 3}) {
    Array wanted = variables[statistic];
    const Array& batch = statistic == 2 ? moments.mean : moments.variance;
    for (int64_t c = 0; c < channels; ++c) {
      wanted.values[c] = kMomentum * wanted.values[c] + (1 - kMomentum) * batch.values[c];
    }
    CHECK(reference::Distance(reference::ToArray(run.variable_gradients[statistic].view()),
                              wanted) < 1e-6);
  }

  const Array wanted = cut(
      reference::Normalise(x, {variables[2], variables[3]}, variables[0], variables[1], kEpsilon));
  CHECK(reference::Distance(run.Forward(*op, Mode::kInference), wanted) <
        test::ToleranceOfTestDevice());
  BatchNormOptions forward_only = options;
  forward_only.training = false;
  CHECK(reference::Distance(run.Forward(*Made(ops.Make(forward_only)), Mode::kInference), wanted) <
        test::ToleranceOfTestDevice());
}

TEST_CASE("batch norm agrees with its reference in training and inference") {
  for (bool relu : {false, true}) {
    CheckBatchNorm({6, 5}, relu);
    CheckBatchNorm({1, 4, 3, 7}, relu);
    CheckBatchNorm({3, 5, 4, 16}, relu);
    CheckBatchNorm({4, 9, 9, 33}, relu);
  }
}

TEST_CASE("batch norm of a constant channel puts out beta") {
  TestOps ops(1);
  Array x({4, 2});
  std::fill(x.values.begin(), x.values.end(), 7.0);
  const std::vector<Array> variables = Statistics(2);
  OpRun run(ops, {x}, variables, x.dims);
  const std::unique_ptr<Op> op =
      Made(ops.Make(BatchNormOptions{{.batch = 4}, 1, 2, kMomentum, kEpsilon}));
  const Array y = run.Forward(*op, Mode::kTraining);
  for (int64_t i = 0; i < y.size(); ++i) {
    CHECK(y.values[i] == Approx(variables[1].values[i % 2]).margin(test::ToleranceOfTestDevice()));
  }
}

TEST_CASE("a batch norm and its relu keep a NaN of the input and of a variable") {
  TestOps ops(2);
  Array x = Array::Random({4, 9, 9, 5}, "x");
  x.values[3 * 9 * 9 * 5 + 1] = std::nan("");
  std::vector<Array> variables = Statistics(5);
  variables[0].values[2] = std::nan("");
  variables[1].values[3] = std::nan("");
  OpRun run(ops, {x}, variables, x.dims);
  const std::unique_ptr<Op> op =
      Made(ops.Make(BatchNormOptions{{.batch = 4}, 9 * 9, 5, kMomentum, kEpsilon, true}));
  for (Mode mode : {Mode::kTraining, Mode::kInference}) {
    const Array y = run.Forward(*op, mode);
    int64_t wrong = 0;
    for (int64_t i = 0; i < y.size(); ++i) {
      // Moments of the batch are those of all its elements.
      const bool of_input = mode == Mode::kTraining ? i % 5 == 1 : std::isnan(x.values[i]);
      const bool is_nan = of_input || i % 5 == 2 || i % 5 == 3;
      wrong += is_nan ? !std::isnan(y.values[i]) : !(y.values[i] >= 0);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("a batch norm and its relu do not hide that a channel's sum is too large for a float") {
  TestOps ops(2);
  Array x({4, 30, 30, 2});
  std::fill(x.values.begin(), x.values.end(), 1e36);
  std::vector<Array> variables = Statistics(2);
  variables[1].values = {0.5, 0.5};
  OpRun run(ops, {x}, variables, x.dims);
  const std::unique_ptr<Op> op =
      Made(ops.Make(BatchNormOptions{{.batch = 4}, 30 * 30, 2, kMomentum, kEpsilon, true}));
  const Array y = run.Forward(*op, Mode::kTraining);
  int64_t hidden = 0;
  for (double value : y.values) hidden += value == 0;
  CHECK(hidden == 0);
}

TEST_CASE("a frozen batch norm normalises with its moving statistics, in training too") {
  constexpr float kEpsilon = 0.01f;
  std::vector<Array> variables;
  for (const char* name : {"gamma", "beta", "mean", "variance"}) {
    variables.push_back(Array::Random({3}, name));
  }
  for (double& variance : variables[3].values) variance += 1.5;
  for (bool relu : {false, true}) {
    TestOps ops(2);
    const std::unique_ptr<Op> op =
        Made(ops.Make(BatchNormOptions{{.batch = 4, .variable_gradients = false},
                                       2000,
                                       3,
                                       0.5f,
                                       kEpsilon,
                                       relu,
                                       /*frozen=*/true}));
    CheckOp(ops, *op, {Array::Random({4, 2000, 3}, "x")}, variables, 0,
            [&](const std::vector<Array>& inputs, const std::vector<Array>& v) {
              const Array y = reference::Normalise(inputs[0], {v[2], v[3]}, v[0], v[1], kEpsilon);
              return relu ? reference::Relu(y) : y;
            });
  }
}

TEST_CASE("a batch norm whose gradients nobody needs still takes the moments of the batch") {
  constexpr float kEpsilon = 0.01f;
  std::vector<Array> variables;
  for (const char* name : {"gamma", "beta", "mean", "variance"}) {
    variables.push_back(Array::Random({3}, name));
  }
  for (const bool relu : {false, true}) {
    TestOps ops(2);
    const std::unique_ptr<Op> op = Made(ops.Make(
        BatchNormOptions{{.batch = 4, .variable_gradients = false}, 50, 3, 0.5f, kEpsilon, relu}));
    const Array x = Array::Random({4, 50, 3}, "x");
    const auto reference = [&](const std::vector<Array>& inputs, const std::vector<Array>& v) {
      const Array y =
          reference::Normalise(inputs[0], reference::MomentsOf(inputs[0]), v[0], v[1], kEpsilon);
      return relu ? reference::Relu(y) : y;
    };
    CheckOp(ops, *op, {x}, variables, 0, reference);
    OpRun run(ops, {x}, variables, x.dims);
    run.Forward(*op, Mode::kTraining);
    run.Backward(*op, Array::Random(x.dims, "weights"));
    for (const Tensor& gradient : run.variable_gradients) {
      for (const float value : gradient.as<float>()) CHECK(std::isnan(value));
    }
  }
}

}  // namespace
}  // namespace lockstep::worker
