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

JobText Job(int max_steps, const std::string& checkpoints) {
  return {.global_batch = 24,
          .max_steps = max_steps,
          .optimizer = "adam {} learning_rate { base: 0.003 cosine { decay_steps: 60 } }",
          .checkpoint = "folder: '" + checkpoints + "' every_steps: 20",
          .data = DigitsData() + " augmentation { shift: 1 }",
          .model = kModel,
          .more = "seed: 3"};
}

std::vector<double> From(const std::vector<double>& losses, int step) {
  REQUIRE(losses.size() > step);
  return {losses.begin() + step, losses.end()};
}

nlohmann::json Run(int ps, int workers, const JobText& job,
                   const std::vector<std::string>& flags = {}) {
  Cluster cluster(ps, workers);
  cluster.StartAll(job, flags);
  return Finish(cluster);
}

TEST_CASE("a restored run gives the losses of the run that went on, on any number of ps") {
  const int workers = GENERATE(1, 2);
  CAPTURE(workers);
  const TemporaryFolder saved;
  const std::vector<double> losses = LossesOf(2, workers, Job(40, saved.path()));
  REQUIRE(losses.size() == 40);
  for (const int ps : {2, 1, 3}) {
    CAPTURE(ps);
    const auto summary = Run(ps, workers, Job(40, "again"), {"--restore=" + saved.Path("ckpt-20")});
    CHECK(summary["start_step"] == 20);
    CHECK(Losses(summary) == From(losses, 20));
  }
}

TEST_CASE("--restore takes the newest checkpoint of the job's folder") {
  const TemporaryFolder saved;
  Run(1, 1, Job(40, saved.path()));
  const auto longer = Run(1, 1, Job(50, saved.path()), {"--restore"});
  CHECK(longer["start_step"] == 40);
  CHECK(longer["steps"] == 50);
  CHECK(Losses(longer) == From(LossesOf(1, 1, Job(50, "whole")), 40));
}

TEST_CASE("a run restored with another number of workers goes on as before") {
  const TemporaryFolder saved;
  JobText job = Job(40, saved.path());
  job.model = kPlainModel;
  job.data = DigitsData();
  const std::vector<double> losses = LossesOf(1, 2, job);
  const std::vector<double> three = LossesOf(2, 3, job, {"--restore=" + saved.Path("ckpt-20")});
  CHECK(LargestRelativeDifference(From(losses, 20), three) < 1e-5);
}

}  // namespace
}  // namespace lockstep::test
