// Workers whose GPU fails, and one that times cuDNN's engines: the same programs as everywhere,
// over libraries that stand in for CUDA's.
#include <catch2/catch.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "tests/integration/cluster.h"
#include "tests/integration/training_run.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::EndsWith;

constexpr absl::Duration kWhole = absl::Seconds(60);
// Of the driver: some steps after the start, the last of which are launched as graphs.
constexpr int64_t kFailingCall = 700;

TEST_CASE("a GPU that fails ends its worker, and not the job that has a backup") {
  Cluster cluster(1, 2);
  cluster.SlowDown(absl::Milliseconds(5));
  cluster.UseGpu(1, kFailingCall);
  cluster.StartAll({.max_steps = 200,
                    .sync = "replicas_to_aggregate: 1 quorum_policy: SHRINK",
                    .model = kPlainModel},
                   {"--lease=2"});
  const auto failed = cluster.worker(1).Wait(kWhole);
  const auto code = cluster.chief().Wait(kWhole);
  INFO(cluster.Logs());
  CHECK(failed == 158);
  CHECK_THAT(cluster.worker(1).Output(),
             Contains("\nworker 1: cuda:0: cu") &&
                 EndsWith("CUDA_ERROR_LAUNCH_FAILED (of the fake driver)\n"));
  CHECK(code == 0);
  CHECK(cluster.worker(0).Wait(kWhole) == 0);
}

TEST_CASE("whichever call of the driver fails, the worker says so and the job goes on") {
  Cluster cluster(1, 2);
  cluster.SlowDown(absl::Milliseconds(5));
  cluster.UseGpu(1, 0);
  cluster.StartAll({.max_steps = 1'000'000,
                    .sync = "replicas_to_aggregate: 1 quorum_policy: SHRINK",
                    .model = kPlainModel},
                   {"--lease=2"});
  // What the log says of a GPU is asked for first; the worker does without it.
  constexpr int64_t kMostOpening = 20;
  for (int64_t call = 1; call < kFailingCall; call += 1 + call / 2) {
    INFO("call " << call);
    cluster.UseGpu(1, call);
    cluster.StartWorker(1);
    Process& worker = cluster.worker(1);
    if (call < kMostOpening && worker.WaitForOutput("joined job", kWhole)) continue;
    const auto failed = worker.Wait(kWhole);
    INFO(cluster.Logs());
    CHECK((failed == 158 || (failed == 78 && call < kMostOpening)));
    CHECK_THAT(worker.Output(), Contains("\nworker 1: ") && Contains(": CUDA_ERROR"));
    REQUIRE(cluster.chief().running());
    REQUIRE(cluster.worker(0).running());
  }
}

// Of GPUs that are short of something, and work.
struct Shortage {
  int result;  // of the driver
  const char* name;
};
constexpr Shortage kShortages[] = {{2, "CUDA_ERROR_OUT_OF_MEMORY"},
                                   {46, "CUDA_ERROR_DEVICE_UNAVAILABLE"}};

TEST_CASE("whichever call of the driver is short of something, the worker says so and ends well") {
  Cluster cluster(1, 2);
  cluster.SlowDown(absl::Milliseconds(5));
  cluster.UseGpu(1);
  cluster.StartAll({.max_steps = 1'000'000,
                    .sync = "replicas_to_aggregate: 1 quorum_policy: SHRINK",
                    .model = kPlainModel},
                   {"--lease=2"}, /*workers=*/1);
  std::vector<std::string> command = cluster.Worker(1);
  command.push_back("--device=cuda");
  constexpr int64_t kMostOpening = 20;
  for (const auto& [result, name] : kShortages) {
    for (int64_t call = 1; call < kFailingCall; call += 1 + call / 2) {
      std::vector<std::string> environment = cluster.GpuEnvironment();
      environment.push_back(absl::StrCat("LOCKSTEP_FAILING_CUDA_CALL=", call));
      environment.push_back(absl::StrCat("LOCKSTEP_FAILING_CUDA_RESULT=", result));
      Process worker(command, std::move(environment));
      if (call < kMostOpening && worker.WaitForOutput("joined job", kWhole)) continue;
      const bool is_told = worker.WaitForOutput(name, kWhole);
      INFO(name << " of call " << call << ":\n" << worker.Output() << cluster.Logs());
      REQUIRE(is_told);
      // Memory of the host need not be pinned, nor a step be a graph.
      if (worker.WaitForOutput(" copies at a fraction of the speed", absl::ZeroDuration()) ||
          worker.WaitForOutput("steps run without CUDA graphs", absl::ZeroDuration())) {
        CHECK(worker.WaitForOutput("joined job", kWhole));
        REQUIRE(cluster.chief().running());
        continue;
      }
      const auto ended = worker.Wait(kWhole);
      CHECK((ended == 158 || ended == 78 || (ended == 138 && call < kMostOpening)));
      CHECK_THAT(worker.Output(), Contains("\nworker 1: ") && EndsWith("\n"));
      REQUIRE(cluster.chief().running());
      REQUIRE(cluster.worker(0).running());
    }
  }
}

TEST_CASE("a worker that is started again takes the place of one whose GPU has failed") {
  Cluster cluster(1, 1);
  cluster.UseGpu(0, kFailingCall);
  cluster.StartAll({.max_steps = 60, .model = kPlainModel}, {"--lease=2"});
  const auto failed = cluster.worker(0).Wait(kWhole);
  {
    INFO(cluster.Logs());
    REQUIRE(failed == 158);
  }
  cluster.UseGpu(0);
  cluster.StartWorker(0);
  CHECK(Finish(cluster)["steps"] == 60);
}

TEST_CASE("a worker that is told to time cuDNN's engines trains with those that it finds") {
  Cluster cluster(1, 1);
  cluster.UseGpu(0);
  cluster.StartAll({.max_steps = 1'000'000, .model = kPlainModel}, {}, /*workers=*/0);
  std::vector<std::string> command = cluster.Worker(0);
  command.insert(command.end(), {"--device=cuda", "--autotune"});
  Process worker(std::move(command), cluster.GpuEnvironment());
  REQUIRE(cluster.WaitForStep(3, kWhole));
  const auto status = FetchStatus(cluster.spec().workers[0], absl::Seconds(1));
  REQUIRE(status.ok());
  REQUIRE(status->worker().gpus_size() == 1);
  uint64_t convolutions = 0;
  for (const EngineStatus& engine : status->worker().gpus(0).engines()) {
    CHECK((engine.engine() == 3 || engine.engine() == 57));
    convolutions += engine.convolutions();
  }
  // Each pass is counted once, however many engines were timed: training's forward and gradient of
  // the kernel, and forward for the two sizes of the evaluation's batches.
  CHECK(convolutions == 4);
}

}  // namespace
}  // namespace lockstep::test
