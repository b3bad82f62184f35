// A run that goes on from a checkpoint repeats what a run that never stopped does.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

// All that a checkpoint must carry, or a step must make again from seed and position alone: moving
// statistics, dropout, shifts, Adam's slots and powers, the schedule's place.
constexpr char kModel[] = R"(
  input_shape: [8, 8, 1]
  layers { name: "conv" conv2d { filters: 8 kernel: 3 no_bias: true } }
  layers { name: "norm" batch_norm { momentum: 0.9 } }
  layers { name: "relu" relu {} }
  layers { name: "drop" dropout { rate: 0.25 } }
  layers { name: "flat" flatten {} }
  layers { name: "scores" dense { units: 10 } }
  layers { name: "loss" softmax_cross_entropy {} })";

std::string Job(int max_steps, const std::string& checkpoints) {
  return DigitsData("augmentation { shift: 1 }") +
         "global_batch: 24 seed: 3\nmax_steps: " + std::to_string(max_steps) +
         "\noptimizer { adam {} learning_rate { base: 0.003 cosine { decay_steps: 60 } } }\n"
         "checkpoint { folder: '" +
         checkpoints + "' every_steps: 20 keep_last: 9 }\n";
}

std::vector<double> From(const std::vector<double>& losses, int step) {
  REQUIRE(losses.size() > step);
  return {losses.begin() + step, losses.end()};
}

TEST_CASE("a restored run gives the losses of the run that went on") {
  const int workers = GENERATE(1, 2);
  CAPTURE(workers);
  TrainingRun first({.workers = workers, .ps = 2, .model = kModel, .job = Job(40, "saved")});
  const std::vector<double> losses = Losses(first.Finish());
  REQUIRE(losses.size() == 40);

  for (const int ps : {2, 1, 3}) {
    CAPTURE(ps);
    TrainingRun second({.workers = workers,
                        .ps = ps,
                        .model = kModel,
                        .job = Job(40, "saved"),
                        .restore = first.Path("saved/ckpt-20")});
    const nlohmann::json summary = second.Finish();
    CHECK(summary["start_step"] == 20);
    CHECK(Losses(summary) == From(losses, 20));
  }
}

TEST_CASE("--restore takes the newest checkpoint of the job's folder") {
  const TemporaryFolder folder;
  TrainingRun({.model = kModel, .job = Job(40, folder.path())}).Finish();
  const nlohmann::json longer =
      TrainingRun({.model = kModel, .job = Job(50, folder.path()), .restore = "latest"}).Finish();
  CHECK(longer["start_step"] == 40);
  CHECK(longer["steps"] == 50);
  const std::vector<double> whole = LossesOf({.model = kModel, .job = Job(50, "saved")});
  CHECK(Losses(longer) == From(whole, 40));
}

TEST_CASE("a run restored with other workers goes on as before") {
  const auto job = [](const std::string& checkpoints) {
    return DigitsData() +
           "global_batch: 24 max_steps: 40\n"
           "optimizer { adam {} learning_rate { base: 0.003 } }\n"
           "checkpoint { folder: '" +
           checkpoints + "' every_steps: 20 }\n";
  };
  TrainingRun first({.workers = 2, .job = job("saved")});
  const std::vector<double> losses = Losses(first.Finish());
  const std::vector<double> three = LossesOf(
      {.workers = 3, .ps = 2, .job = job("saved"), .restore = first.Path("saved/ckpt-20")});
  CHECK(LargestRelativeDifference(From(losses, 20), three) < 1e-4);
}

}  // namespace
}  // namespace lockstep::test
