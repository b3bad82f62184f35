// Workers that use several GPUs, which are imitated.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "tests/integration/cluster.h"
#include "tests/integration/training_run.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;

constexpr absl::Duration kWhole = absl::Seconds(60);

TEST_CASE("each strategy trains towers on two GPUs as on a CPU") {
  for (const std::string strategy :
       {"towers: 3", "towers: 2 strategy { parameter_server { ps_device: GPU } }",
        "towers: 3 strategy { parameter_server { cross_tower_ops { reduction_to_one_device {} } } "
        "}",
        "towers: 3 strategy { parameter_server { cross_tower_ops { all_reduce { "
        "all_reduce_alg: 'hierarchical_copy' } } } }",
        "towers: 2 strategy { replicated {} }",
        "towers: 2 local_sync { max_per_device_batch_size: 5 load: 60 passes: 2 }"}) {
    INFO(strategy);
    JobText job{.max_steps = 20, .model = kPlainModel, .more = strategy};
    if (job.more.find("local_sync") != std::string::npos) job.global_batch = 0;
    const std::vector<double> wanted = LossesOf(1, 2, job);
    Cluster cluster(1, 2);
    cluster.ImitateGpus(2);
    cluster.UseGpu(1);
    cluster.StartAll(job, {"--record_losses"});
    CHECK(LargestRelativeDifference(wanted, Losses(Finish(cluster))) < 1e-4);
    CHECK_THAT(cluster.worker(1).Output(),
               Contains("computes on cuda:0 (") && Contains("), cuda:1 ("));
    std::string reduced = "gradients of cuda:0,cuda:1 are reduced by ";
    if (strategy.find("replicated") != std::string::npos) {
      CHECK_THAT(cluster.worker(1).Output(), !Contains(reduced));
      continue;
    }
    const bool is_named = strategy.find("cross_tower_ops") != std::string::npos;
    const bool is_halved = strategy.find("hierarchical_copy") != std::string::npos;
    reduced += is_halved  ? "hierarchical_copy: the job says all_reduce"
               : is_named ? "copies to cuda:0: the job says reduction_to_one_device"
                          : "NCCL 2.99.5: all devices are GPUs";
    CHECK_THAT(cluster.worker(1).Output(), Contains(reduced));
  }
}

TEST_CASE("an asynchronous job trains each tower on a GPU of its own") {
  Cluster cluster(1, 1);
  cluster.ImitateGpus(2);
  cluster.UseGpu(0);
  cluster.StartAll({.max_steps = 60, .sync = "asynchronous {}", .more = "towers: 2"});
  CHECK(Finish(cluster)["steps"] == 60);
  CHECK_THAT(cluster.worker(0).Output(),
             Contains("computes on cuda:0 (") && Contains("), cuda:1 ("));
}

TEST_CASE("of more GPUs than a worker has towers it uses the first, and says so") {
  Cluster cluster(1, 1);
  cluster.ImitateGpus(3);
  cluster.UseGpu(0);
  cluster.StartAll({.max_steps = 10, .model = kPlainModel, .more = "towers: 2"});
  CHECK(Finish(cluster)["steps"] == 10);
  CHECK_THAT(
      cluster.worker(0).Output(),
      Contains("uses cuda:0,cuda:1 of cuda:0,cuda:1,cuda:2: the job has 2 towers per worker"));
}

TEST_CASE("a worker's status tells what each of its GPUs is used for") {
  Cluster cluster(1, 2);
  cluster.ImitateGpus(2);
  cluster.UseGpu(0);
  cluster.StartAll({.max_steps = 1'000'000, .model = kPlainModel, .more = "towers: 2"});
  REQUIRE(cluster.WaitForStep(3, kWhole));
  const auto status = FetchStatus(cluster.spec().workers[0], absl::Seconds(1));
  REQUIRE(status.ok());
  CHECK(status->worker().device() == "cuda:0,cuda:1");
  CHECK_THAT(status->worker().reduction(), StartsWith("NCCL 2.99.5: all devices are GPUs"));
  REQUIRE(status->worker().gpus_size() == 2);
  for (const GpuStatus& gpu : status->worker().gpus()) {
    CHECK(gpu.memory_bytes() > 0);
    CHECK(gpu.memory_bytes() < gpu.memory_limit_bytes());
    CHECK(gpu.bytes_to_device() > gpu.bytes_to_host());
    CHECK(gpu.graph_steps() > 0);
    CHECK(gpu.training_steps() > gpu.graph_steps());  // the first is enqueued
    CHECK(gpu.graph_error().empty());
    REQUIRE(gpu.engines_size() == 1);
    CHECK(gpu.engines(0).engine() == 57);
  }
  // Forward and gradient of the kernel: the input of the first layer needs none. The first GPU also
  // evaluates, in batches of two sizes.
  CHECK(status->worker().gpus(0).engines(0).convolutions() == 4);
  CHECK(status->worker().gpus(1).engines(0).convolutions() == 2);
  const auto on_cpu = FetchStatus(cluster.spec().workers[1], absl::Seconds(1));
  REQUIRE(on_cpu.ok());
  CHECK(on_cpu->worker().device() == "cpu");
  CHECK(on_cpu->worker().gpus().empty());
  CHECK_THAT(cluster.worker(1).Output(), !Contains(" uses "));
  // The first alone sends what both have computed.
  CHECK(status->worker().gpus(0).bytes_to_host() > 100 * status->worker().gpus(1).bytes_to_host());
}

TEST_CASE("one GPU of several that fails ends its worker, and not the job that has a backup") {
  constexpr int64_t kFailingCall = 1500;  // some steps after the start
  Cluster cluster(1, 2);
  cluster.SlowDown(absl::Milliseconds(5));
  cluster.ImitateGpus(2);
  cluster.UseGpu(1, kFailingCall);
  cluster.StartAll({.max_steps = 200,
                    .sync = "replicas_to_aggregate: 1 quorum_policy: SHRINK",
                    .model = kPlainModel,
                    .more = "towers: 2"},
                   {"--lease=2"});
  const auto failed = cluster.worker(1).Wait(kWhole);
  const auto code = cluster.chief().Wait(kWhole);
  INFO(cluster.Logs());
  CHECK(failed == 158);
  CHECK(code == 0);
}

}  // namespace
}  // namespace lockstep::test
