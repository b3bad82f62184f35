// Real jobs with workers on a GPU: this machine's, or one that is imitated.
#include <catch2/catch.hpp>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "tests/integration/cluster.h"
#include "tests/integration/training_run.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);

// Of a run with two workers on the GPU.
std::vector<double> LossesOnGpu(const JobText& job) {
  Cluster cluster(1, 2);
  cluster.UseGpu(0);
  cluster.UseGpu(1);
  cluster.StartAll(job, {"--record_losses"});
  return Losses(Finish(cluster));
}

TEST_CASE("workers on a CPU and on a GPU train one job as two on CPUs") {
  const JobText job{.max_steps = 50, .model = kPlainModel};
  const std::vector<double> wanted = LossesOf(1, 2, job);
  Cluster cluster(1, 2);
  cluster.UseGpu(1);
  JobText saved = job;
  saved.checkpoint = "folder: '" + cluster.folder().Path("checkpoint") + "'";
  cluster.StartAll(saved, {"--record_losses"});
  const std::vector<double> losses = Losses(Finish(cluster));
  CHECK(LargestRelativeDifference(wanted, losses) < 1e-4);
  CHECK_THAT(cluster.worker(0).Output(), Contains("computes on the CPU, with "));
  CHECK_THAT(cluster.worker(1).Output(), Contains("computes on cuda:0 ("));

  const std::string checkpoint = cluster.folder().Path("checkpoint");
  const nlohmann::json on_cpu = EvaluateAlone(checkpoint);
  const std::string file = cluster.folder().Path("on_gpu.json");
  const Ended on_gpu = RunToEnd({Binary("worker/predict"), "evaluate", "--device=cuda",
                                 "--checkpoint=" + checkpoint, "--json=" + file},
                                kWhole, cluster.GpuEnvironment());
  INFO(on_gpu.output);
  REQUIRE(on_gpu.exit_code == 0);
  CHECK(nlohmann::json::parse(cluster.folder().Read("on_gpu.json")).at("accuracy") ==
        on_cpu.at("accuracy"));
}

TEST_CASE("each strategy trains on a GPU as on a CPU") {
  for (const std::string strategy :
       {"towers: 2", "towers: 2 strategy { parameter_server { ps_device: GPU } }",
        "towers: 2 strategy { replicated {} }", "strategy { replicated {} }",
        "local_sync { max_per_device_batch_size: 5 load: 60 passes: 2 }"}) {
    INFO(strategy);
    JobText job{.max_steps = 20, .model = kPlainModel, .more = strategy};
    if (strategy.starts_with("local_sync")) job.global_batch = 0;
    const std::vector<double> wanted = LossesOf(1, 2, job);
    Cluster cluster(1, 2);
    cluster.UseGpu(1);
    cluster.StartAll(job, {"--record_losses"});
    CHECK(LargestRelativeDifference(wanted, Losses(Finish(cluster))) < 1e-4);
  }
}

TEST_CASE("two runs on a GPU have the same losses to the last bit") {
  const JobText job{.max_steps = 50, .model = kPlainModel};
  CHECK(LossesOnGpu(job) == LossesOnGpu(job));
}

TEST_CASE("two towers on a GPU train as one of twice the batch") {
  JobText job{.max_steps = 50, .model = kPlainModel};
  const std::vector<double> one = LossesOnGpu(job);
  job.more = "towers: 2";
  CHECK(LargestRelativeDifference(one, LossesOnGpu(job)) < 1e-4);
}

}  // namespace
}  // namespace lockstep::test
