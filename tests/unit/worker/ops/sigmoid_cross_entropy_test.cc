// Sigmoid cross-entropy against what Keras answered (tests/oracle/record_losses.py).
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/reference/layers.h"
#include "tests/unit/worker/ops/op_check.h"

namespace lockstep::worker {
namespace {

using reference::Array;

Array RecordedArray(const nlohmann::json& json) {
  Array array(json["dims"].get<std::vector<int64_t>>());
  array.values = json["values"].get<std::vector<double>>();
  return array;
}

std::unique_ptr<Loss> SigmoidLoss(TestOps& ops, int64_t batch, int64_t outputs,
                                  std::optional<float> target) {
  OpTable::MadeOr<Loss> loss =
      ops.Make(LossOptions{LossKind::kSigmoidCrossEntropy, batch, outputs, target});
  REQUIRE(loss.ok());
  return *std::move(loss);
}

TEST_CASE("sigmoid cross-entropy agrees with Keras, with labels and with a constant target") {
  std::ifstream file("tests/unit/worker/ops/sigmoid_keras.json");
  const nlohmann::json cases = nlohmann::json::parse(file)["cases"];
  REQUIRE(cases.size() == 5);
  TestOps ops(1);
  for (const nlohmann::json& recorded : cases) {
    const Array logits = RecordedArray(recorded["logits"]);
    const int64_t batch = logits.dims[0];
    const int64_t outputs = logits.dims[1];
    CAPTURE(batch, outputs);
    std::optional<float> target;
    if (!recorded["target"].is_null()) target = recorded["target"].get<float>();
    // A constant target reads no labels: NaN shows one that does.
    Array targets = RecordedArray(recorded["targets"]);
    for (double& value : targets.values) {
      if (target.has_value()) value = std::nan("");
    }
    const double mean = recorded["loss"].get<double>();
    const std::unique_ptr<Loss> loss = SigmoidLoss(ops, batch, outputs, target);
    const Tensor on_host = reference::ToTensor(logits);
    const Tensor labels = reference::ToTensor(targets);
    Tensor gradient(DType::kFloat32, on_host.shape());
    LossRun run(ops, *loss, on_host, labels);
    CHECK(run.Train(&gradient) == Approx(mean).epsilon(1e-6));
    CHECK(reference::Distance(reference::ToArray(gradient.view()),
                              RecordedArray(recorded["gradient"])) < 1e-6);
    const std::vector<double> sums = run.Evaluate();
    CHECK(sums[Loss::kLossSum] == Approx(mean * static_cast<double>(batch)).epsilon(1e-6));
    CHECK(reference::Distance(reference::ToArray(run.Predict().view()),
                              RecordedArray(recorded["probabilities"])) < 1e-6);
  }
}

TEST_CASE("sigmoid cross-entropy of huge logits is finite, and of no number no number") {
  TestOps ops(1);
  Array logits({3, 1});
  logits.values = {1e30, -1e30, 5};
  const Tensor on_host = reference::ToTensor(logits);
  const Tensor labels(DType::kFloat32, Shape({3, 1}));
  Tensor gradient(DType::kFloat32, on_host.shape());
  const std::unique_ptr<Loss> loss = SigmoidLoss(ops, 3, 1, 1.0f);
  CHECK(LossRun(ops, *loss, on_host, labels).Train(&gradient) == Approx(1e30 / 3));
  CHECK(gradient.as<float>()[0] == 0);
  CHECK(gradient.as<float>()[1] == Approx(-1.0 / 3));
  logits.values[2] = std::nan("");
  const Tensor broken = reference::ToTensor(logits);
  CHECK(std::isnan(LossRun(ops, *loss, broken, labels).Train(&gradient)));
  CHECK(std::isnan(gradient.as<float>()[2]));
}

}  // namespace
}  // namespace lockstep::worker
