// As many processes as one machine is asked to hold.
#include <catch2/catch.hpp>

#include "tests/integration/process_memory.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr int kPs = 8;
constexpr int kWorkers = 64;
constexpr uint64_t kMebibyte = uint64_t{1} << 20;
// What docs/operations.md says of a process that holds few tensors.
constexpr uint64_t kOwnBytes = 40 * kMebibyte;
constexpr int kThreads = 32;

TEST_CASE("Sixty-four workers and eight ps on one machine train to the end, all of them small") {
  JobText job;
  job.global_batch = kWorkers;
  job.max_steps = 30;  // with SlowDown for longer than a look at a machine so full can take
  job.model = kPlainModel;
  job.more = "max_part_bytes: 400";  // something for every ps
  Cluster cluster(kPs, kWorkers);
  cluster.SlowDown(absl::Milliseconds(100));
  cluster.StartAll(job, {"--start_timeout=300"});
  const bool trains = cluster.WaitForStep(2, absl::Minutes(2));
  if (!trains) FAIL(cluster.Logs());
  for (int i = 0; i < kWorkers; ++i) {
    const ProcessMemory worker = MemoryOf(cluster.worker(i));
    CHECK(worker.peak < kOwnBytes);
    CHECK(worker.threads <= kThreads + kPs);
  }
  for (int i = 0; i < kPs; ++i) {
    const ProcessMemory ps = MemoryOf(cluster.ps(i));
    CHECK(ps.peak < kOwnBytes);
    CHECK(ps.threads <= kThreads);
  }
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["steps"] == 30);
}

}  // namespace
}  // namespace lockstep::test
