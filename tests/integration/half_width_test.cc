// Whole jobs whose tensors travel in half the width.
#include <signal.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Seconds(60);

JobText Job(const std::string& transport, int steps = 60) {
  return {.global_batch = 24,
          .max_steps = steps,
          .optimizer = "momentum { momentum: 0.9 } learning_rate { base: 0.1 }",
          .model = kPlainModel,
          .more = absl::StrCat("seed: 7 transport { ", transport, " }")};
}

TEST_CASE("A job in half the width trains as one in float32 does, each time to the same bits") {
  const std::vector<double> wide = LossesOf(2, 2, Job("shared_memory: OFF"));
  for (const std::string type : {"BFLOAT16", "FLOAT16"}) {
    CAPTURE(type);
    const JobText job = Job("shared_memory: OFF wire_type: " + type);
    const std::vector<double> losses = LossesOf(2, 2, job);
    CHECK(losses != wide);
    CHECK(LargestRelativeDifference(wide, losses) < 0.1);
    CHECK(losses.back() < 0.5 * losses.front());
    CHECK(losses == LossesOf(1, 2, job));
  }
}

TEST_CASE("Where memory is shared nothing travels, and nothing is rounded") {
  const std::vector<double> wide = LossesOf(2, 2, Job("shared_memory: OFF"));
  for (const std::string place : {"COPY", "MAP"}) {
    CHECK(wide ==
          LossesOf(2, 2, Job(absl::StrCat("shared_memory: ", place, " wire_type: BFLOAT16"))));
  }
}

TEST_CASE("A worker that is killed and started again changes no bit of a job in half the width") {
  for (const std::string type : {"BFLOAT16", "FLOAT16"}) {
    CAPTURE(type);
    const TemporaryFolder saved;
    JobText job = Job("shared_memory: OFF wire_type: " + type, 200);
    std::vector<nlohmann::json> summaries;
    for (const bool kills : {false, true}) {
      job.checkpoint = absl::StrCat("folder: '", saved.Path(kills ? "killed" : "whole"), "'");
      Cluster cluster(2, 2);
      if (kills) cluster.SlowDown(absl::Milliseconds(5));
      cluster.StartAll(job);
      if (!kills) {
        summaries.push_back(Finish(cluster));
        continue;
      }
      REQUIRE(cluster.WaitForStep(50, kWhole));
      cluster.worker(1).Signal(SIGKILL);
      REQUIRE(cluster.worker(1).Wait(kWhole) == 137);
      Process successor(cluster.Worker(1));
      const auto code = cluster.chief().Wait(kWhole);
      INFO(cluster.Logs() << "successor:\n" << successor.Output());
      REQUIRE(code == 0);
      CHECK(successor.Wait(kWhole) == 0);
      summaries.push_back(nlohmann::json::parse(cluster.Summary()));
    }
    CHECK(Losses(summaries[0]) == Losses(summaries[1]));
    CHECK(summaries[0]["test_loss"] == summaries[1]["test_loss"]);
    // The checkpoint has the values that were evaluated, in float32.
    const nlohmann::json alone = EvaluateAlone(saved.Path("killed"));
    CHECK(alone["loss"].get<double>() ==
          Approx(summaries[1]["test_loss"].get<double>()).epsilon(1e-5));
  }
}

}  // namespace
}  // namespace lockstep::test
