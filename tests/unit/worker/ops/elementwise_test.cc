// Activations, dropout, add and concatenate.
#include <catch2/catch.hpp>
#include <cmath>

#include "tests/reference/layers.h"
#include "tests/support/test_device.h"
#include "tests/unit/worker/ops/op_check.h"
#include "worker/ops/activation.h"
#include "worker/ops/add.h"
#include "worker/ops/concatenate.h"
#include "worker/ops/dropout.h"

namespace lockstep::worker {
namespace {

using reference::Array;

// Large enough that two threads share it.
constexpr int64_t kManyElements = 20011;

TEST_CASE("activations agree with their references, forward and backward") {
  for (int64_t elements : {int64_t{1}, int64_t{13}, kManyElements}) {
    TestOps ops(2);
    const auto check = [&](ActivationKind kind, Array (*function)(Array)) {
      const std::unique_ptr<Op> op =
          Made(ops.Make(ActivationOptions{{.batch = 3}, kind, elements}));
      Array x = Array::Random({3, elements}, "x");
      for (double& value : x.values) value *= 4;
      CheckOp(ops, *op, {x}, {}, 0,
              [&](const std::vector<Array>& inputs, const std::vector<Array>&) {
                return function(inputs[0]);
              });
    };
    check(ActivationKind::kRelu, &reference::Relu);
    check(ActivationKind::kTanh, &reference::Tanh);
    check(ActivationKind::kSigmoid, &reference::Sigmoid);
  }
}

TEST_CASE("relu keeps a NaN, wherever it stands") {
  TestOps ops(2);
  Array x = Array::Random({3, kManyElements}, "x");
  for (size_t i = 0; i < x.values.size(); i += 7) x.values[i] = std::nan("");
  OpRun run(ops, {x}, {}, x.dims);
  for (bool training : {true, false}) {
    const std::unique_ptr<Op> op = Made(ops.Make(ActivationOptions{
        {.batch = 3, .training = training}, ActivationKind::kRelu, kManyElements}));
    const Array y = run.Forward(*op, training ? Mode::kTraining : Mode::kInference);
    int64_t wrong = 0;
    for (size_t i = 0; i < y.values.size(); ++i) {
      wrong += i % 7 == 0 ? !std::isnan(y.values[i]) : !(y.values[i] >= 0);
    }
    CHECK(wrong == 0);
  }
}

TEST_CASE("activations far from zero saturate instead of becoming NaN") {
  TestOps ops(1);
  Array x({1, 4});
  x.values = {-200, -50, 50, 200};
  for (auto [kind, low, high] : {std::tuple(ActivationKind::kTanh, -1.0, 1.0),
                                 std::tuple(ActivationKind::kSigmoid, 0.0, 1.0)}) {
    const std::unique_ptr<Op> op = Made(ops.Make(ActivationOptions{{.batch = 1}, kind, 4}));
    OpRun run(ops, {x}, {}, {1, 4});
    const Array y = run.Forward(*op, Mode::kTraining);
    CHECK(y.values[0] == Approx(low).margin(1e-6));
    CHECK(y.values[3] == Approx(high).margin(1e-6));
    run.Backward(*op, Array::Random({1, 4}, "gradient"));
    for (float g : run.input_gradients[0].as<float>()) CHECK(std::abs(g) < 1e-6);
  }
}

TEST_CASE("dropout keeps the right part, scales it and sends gradients the same way") {
  constexpr float kRate = 0.3f;
  TestOps ops(2);
  const std::unique_ptr<Op> op =
      Made(ops.Make(DropoutOptions{{.batch = 3}, "drop", kRate, kManyElements}));
  Array ones({3, kManyElements});
  std::fill(ones.values.begin(), ones.values.end(), 1.0);
  OpRun run(ops, {ones}, {}, ones.dims);
  const Array y = run.Forward(*op, Mode::kTraining, 7);
  int64_t kept = 0;
  int64_t wrong = 0;
  for (double value : y.values) {
    if (value == 0) continue;
    ++kept;
    wrong += value != Approx(1 / (1 - kRate)).epsilon(test::ToleranceOfTestDevice());
  }
  CHECK(wrong == 0);
  const double n = static_cast<double>(y.size());
  const double deviation = std::sqrt(n * kRate * (1 - kRate));
  CHECK(std::abs(static_cast<double>(kept) - n * (1 - kRate)) < 4 * deviation);

  run.Backward(*op, ones);
  CHECK(reference::Distance(reference::ToArray(run.input_gradients[0].view()), y) == 0);
}

TEST_CASE("dropout's mask follows from key and name, not from threads or history") {
  const Array x = Array::Random({3, kManyElements}, "x");
  const auto masked = [&](int threads, const std::string& name, std::vector<uint64_t> keys) {
    TestOps ops(threads);
    const std::unique_ptr<Op> op =
        Made(ops.Make(DropoutOptions{{.batch = 3}, name, 0.5f, kManyElements}));
    OpRun run(ops, {x}, {}, x.dims);
    Array y;
    for (uint64_t key : keys) y = run.Forward(*op, Mode::kTraining, key);
    return y.values;
  };
  const std::vector<double> once = masked(1, "a", {5});
  CHECK(once == masked(2, "a", {1, 9, 5}));
  CHECK(once != masked(1, "a", {6}));
  CHECK(once != masked(1, "b", {5}));
}

TEST_CASE("dropout does nothing in inference, and nothing at rate 0") {
  TestOps ops(1);
  const Array x = ops.Rounded(Array::Random({2, 5}, "x"));
  OpRun run(ops, {x}, {}, x.dims);
  const std::unique_ptr<Op> half = Made(ops.Make(DropoutOptions{{.batch = 2}, "half", 0.5f, 5}));
  CHECK(run.Forward(*half, Mode::kInference).values == x.values);
  const std::unique_ptr<Op> none = Made(ops.Make(DropoutOptions{{.batch = 2}, "none", 0.0f, 5}));
  CHECK(run.Forward(*none, Mode::kTraining).values == x.values);
}

TEST_CASE("add agrees with its reference and may write over its first term") {
  TestOps ops(2);
  for (int64_t elements : {int64_t{3}, kManyElements}) {
    const std::unique_ptr<Op> op = Made(ops.Make(AddOptions{{.batch = 2}, elements}));
    std::vector<Array> terms;
    for (const char* name : {"a", "b", "c"}) {
      terms.push_back(ops.Rounded(Array::Random({2, elements}, name)));
    }
    CheckOp(ops, *op, terms, {}, 0,
            [](const std::vector<Array>& inputs, const std::vector<Array>&) {
              return reference::Add(inputs);
            });
    OpRun run(ops, {terms[0], terms[1]}, {}, {2, elements});
    const double tolerance = ops.type() == DType::kFloat32 ? 1e-7 : test::ToleranceOfTestDevice();
    CHECK(reference::Distance(run.ForwardOver(*op), reference::Add({terms[0], terms[1]})) <
          tolerance);
  }
}

TEST_CASE("concatenate agrees with its reference, on vectors and on images") {
  TestOps ops(2);
  const auto join = [](const std::vector<Array>& inputs, const std::vector<Array>&) {
    return reference::Concatenate(inputs);
  };
  const std::unique_ptr<Op> vectors =
      Made(ops.Make(ConcatenateOptions{{.batch = 3}, 1, {2, 1, 4}}));
  CheckOp(ops, *vectors,
          {Array::Random({3, 2}, "a"), Array::Random({3, 1}, "b"), Array::Random({3, 4}, "c")}, {},
          0, join);
  const std::unique_ptr<Op> images =
      Made(ops.Make(ConcatenateOptions{{.batch = 5}, 30 * 31, {3, 5}}));
  CheckOp(ops, *images, {Array::Random({5, 30, 31, 3}, "a"), Array::Random({5, 30, 31, 5}, "b")},
          {}, 0, join);
}

}  // namespace
}  // namespace lockstep::worker
