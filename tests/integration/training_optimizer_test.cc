// What the job says about the optimizer, seen in the checkpoints of a whole run.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>
#include <span>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint.h"
#include "common/optimizer/moving_average.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

const std::vector<std::string> kTrained = {"hidden/kernel", "hidden/bias", "scores/kernel",
                                           "scores/bias"};

std::vector<float> Read(const std::string& checkpoint, const std::string& name) {
  const auto reader = CheckpointReader::Open(checkpoint);
  REQUIRE(reader.ok());
  const auto tensor = reader->Read(name);
  REQUIRE(tensor.ok());
  const std::span<const float> values = tensor->as<float>();
  return {values.begin(), values.end()};
}

// How far the trained variables moved, all together.
double Moved(const std::string& from, const std::string& to) {
  double squares = 0;
  for (const std::string& name : kTrained) {
    const std::vector<float> before = Read(from, name);
    const std::vector<float> after = Read(to, name);
    for (size_t i = 0; i < before.size(); ++i) squares += std::pow(after[i] - before[i], 2);
  }
  return std::sqrt(squares);
}

constexpr double kClip = 0.05;
constexpr double kRate = 0.5;
constexpr double kStart = 0.1;
constexpr int kWarmUp = 4;

// Ends after `steps`, with a checkpoint in `folder`. Runs of one job go the same way.
nlohmann::json Run(int steps, const std::string& folder) {
  Cluster cluster(2, 2);
  cluster.StartAll({.max_steps = steps,
                    .optimizer =
                        "sgd {} learning_rate { base: 0.5 warm_up { steps: 4 start: 0.1 } } "
                        "clipping { global_norm: 0.05 } variable_averages { decay: 0.5 }",
                    .checkpoint = "folder: '" + folder + "'",
                    .evaluation = "use_averages: true"});
  return Finish(cluster);
}

TEST_CASE(
    "a run clips, warms up and averages as its job says, and is evaluated with the averages") {
  const int step = GENERATE(2, 6);
  CAPTURE(step);
  const TemporaryFolder saved;
  Run(step, saved.Path("shorter"));
  const nlohmann::json summary = Run(step + 1, saved.Path("longer"));
  const std::string from = saved.Path(absl::StrCat("shorter/ckpt-", step));
  const std::string to = saved.Path(absl::StrCat("longer/ckpt-", step + 1));

  const double rate = kStart + (kRate - kStart) * std::min(1.0, (step + 1.0) / kWarmUp);
  // The mean of two gradients of that norm is no longer than they are.
  const double moved = Moved(from, to);
  CHECK(moved <= rate * kClip * 1.0001);
  CHECK(moved >= rate * kClip * 0.5);
  for (const std::string& name : kTrained) {
    const std::string average = absl::StrCat(name, "/", kAverageSlot);
    const std::vector<float> before = Read(from, average);
    const std::vector<float> value = Read(to, name);
    std::vector<float> expected(before.size());
    for (size_t i = 0; i < before.size(); ++i) {
      expected[i] = before[i] - (before[i] - value[i]) * 0.5f;
    }
    CHECK(Read(to, average) == expected);
  }

  const nlohmann::json alone = EvaluateAlone(to);
  CHECK(summary["test_averages"] == true);
  CHECK(alone["averages"] == true);
  CHECK(summary["test_accuracy"] == alone["accuracy"]);
  CHECK(summary["test_loss"].get<double>() == Approx(alone["loss"].get<double>()).epsilon(1e-6));
}

}  // namespace
}  // namespace lockstep::test
