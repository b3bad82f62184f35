#include "worker/ops/loss.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "tests/reference/differences.h"
#include "tests/reference/layers.h"
#include "tests/unit/worker/ops/op_check.h"

namespace lockstep::worker {
namespace {

using reference::Array;

std::unique_ptr<Loss> Made(OpTable::MadeOr<Loss> loss) {
  REQUIRE(loss.ok());
  return *std::move(loss);
}

Tensor LabelTensor(const std::vector<int32_t>& labels) {
  Tensor tensor(DType::kInt32, Shape({static_cast<int64_t>(labels.size())}));
  std::copy(labels.begin(), labels.end(), tensor.as<int32_t>().begin());
  return tensor;
}

// Compares every element of the gradient with the derivative of `mean` at `outputs`.
template <typename MeanLoss>
void CheckGradient(const Tensor& gradient, Array outputs, const MeanLoss& mean) {
  Array wanted(outputs.dims);
  for (int64_t i = 0; i < outputs.size(); ++i) {
    wanted.values[i] = reference::Derivative(outputs.values[i], [&] { return mean(outputs); });
  }
  CHECK(reference::Distance(reference::ToArray(gradient.view()), wanted) < 1e-6);
}

TEST_CASE("softmax cross-entropy agrees with its reference") {
  TestOps ops(1);
  for (auto [batch, classes] : {std::pair<int64_t, int64_t>(1, 2), {7, 10}, {3, 101}}) {
    Array scores = Array::Random({batch, classes}, "scores");
    for (double& score : scores.values) score *= 5;
    std::vector<int32_t> labels;
    for (int64_t i = 0; i < batch; ++i) {
      labels.push_back(static_cast<int32_t>((i * 7 + classes - 1) % classes));
    }
    const auto mean = [&](const Array& x) { return reference::SoftmaxCrossEntropy(x, labels); };
    const std::unique_ptr<Loss> loss =
        Made(ops.Make(LossOptions{LossKind::kSoftmaxCrossEntropy, batch, classes}));
    const Tensor outputs = reference::ToTensor(scores);
    const Tensor label_tensor = LabelTensor(labels);
    Tensor gradient(DType::kFloat32, outputs.shape());
    LossRun run(ops, *loss, outputs, label_tensor);
    CHECK(run.Train(&gradient) == Approx(mean(scores)).epsilon(1e-6));
    CheckGradient(gradient, scores, mean);

    CHECK(run.Evaluate()[Loss::kLossSum] ==
          Approx(mean(scores) * static_cast<double>(batch)).epsilon(1e-6));

    const Tensor probabilities = run.Predict();
    CHECK(reference::Distance(reference::ToArray(probabilities.view()),
                              reference::Softmax(scores)) < 1e-6);
  }
}

TEST_CASE("softmax cross-entropy of huge scores is finite") {
  TestOps ops(1);
  Array scores({2, 3});
  scores.values = {1e30, 0, -1e30, -2000, 1000, 999};
  const std::unique_ptr<Loss> loss =
      Made(ops.Make(LossOptions{LossKind::kSoftmaxCrossEntropy, 2, 3}));
  const Tensor outputs = reference::ToTensor(scores);
  Tensor gradient(DType::kFloat32, outputs.shape());
  const Tensor labels = LabelTensor({0, 2});
  const double mean = LossRun(ops, *loss, outputs, labels).Train(&gradient);
  CHECK(mean == Approx((std::log(1 + std::exp(-1.0)) + 1) / 2));
  for (float g : gradient.as<float>()) CHECK(std::isfinite(g));
}

TEST_CASE("correct counts the examples whose first largest score is the label's") {
  TestOps ops(1);
  Array scores({4, 3});
  scores.values = {1, 2, 3, 3, 2, 1, 5, 5, 0, 5, 5, 0};
  const std::unique_ptr<Loss> loss =
      Made(ops.Make(LossOptions{LossKind::kSoftmaxCrossEntropy, 4, 3}));
  const Tensor outputs = reference::ToTensor(scores);
  const Tensor labels = LabelTensor({2, 1, 0, 1});
  CHECK(LossRun(ops, *loss, outputs, labels).Evaluate()[Loss::kCorrect] == 2);
}

TEST_CASE("L2 loss agrees with its reference") {
  TestOps ops(1);
  const Array outputs = Array::Random({5, 3}, "outputs");
  const Array targets = Array::Random({5, 3}, "targets");
  const auto mean = [&](const Array& x) { return reference::L2Loss(x, targets); };
  const std::unique_ptr<Loss> loss = Made(ops.Make(LossOptions{LossKind::kL2, 5, 3}));
  const Tensor y = reference::ToTensor(outputs);
  const Tensor labels = reference::ToTensor(targets);
  Tensor gradient(DType::kFloat32, y.shape());
  LossRun run(ops, *loss, y, labels);
  CHECK(run.Train(&gradient) == Approx(mean(outputs)).epsilon(1e-6));
  CheckGradient(gradient, outputs, mean);
  CHECK(run.Evaluate()[Loss::kLossSum] == Approx(5 * mean(outputs)).epsilon(1e-6));
  const Tensor predictions = run.Predict();
  CHECK(reference::Distance(reference::ToArray(predictions.view()), outputs) == 0);
}

}  // namespace
}  // namespace lockstep::worker
