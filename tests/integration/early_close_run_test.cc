// Whole jobs with variables so large that their ranges close one by one, through sockets.
#include <signal.h>

#include <catch2/catch.hpp>
#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "common/client/status_client.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Seconds(60);

// A kernel of 2 MiB.
JobText Job(const std::string& transport, const std::string& quorum_policy = "WAIT") {
  return {.global_batch = 24,
          .max_steps = 40,
          .optimizer = "momentum { momentum: 0.9 } learning_rate { base: 0.01 }",
          .sync = absl::StrCat("quorum_policy: ", quorum_policy),
          .model = R"(
  input_shape: [8, 8, 1]
  layers { name: "flat" flatten {} }
  layers { name: "wide" dense { units: 8192 } }
  layers { name: "relu" relu {} }
  layers { name: "scores" dense { units: 10 } }
  layers { name: "loss" softmax_cross_entropy {} })",
          .more = absl::StrCat("seed: 7 transport { ", transport, " }")};
}

TEST_CASE("Ranges that close early, whole variables and shared memory give the same losses") {
  const std::vector<double> losses = LossesOf(1, 3, Job("shared_memory: OFF"));
  REQUIRE(losses.size() == 40);
  CHECK(losses.back() < losses.front());
  CHECK(losses == LossesOf(1, 3, Job("shared_memory: OFF", "SHRINK")));
  CHECK(losses == LossesOf(1, 3, Job("shared_memory: COPY")));
  CHECK(LossesOf(2, 3, Job("wire_type: BFLOAT16")) ==
        LossesOf(2, 3, Job("wire_type: BFLOAT16", "SHRINK")));
}

TEST_CASE("A worker that is killed while ranges close changes no bit of what comes out") {
  JobText job = Job("shared_memory: OFF");
  job.max_steps = 120;
  const std::vector<double> undisturbed = LossesOf(1, 2, job);
  Cluster cluster(1, 2);
  cluster.StartAll(job);
  std::deque<Process> successors;
  Process* worker = &cluster.worker(1);
  for (const int step : {20, 50, 80}) {
    REQUIRE(cluster.WaitForStep(step, kWhole));
    worker->Signal(SIGKILL);
    REQUIRE(worker->Wait(kWhole) == 137);
    worker = &successors.emplace_back(cluster.Worker(1));
  }
  const auto code = cluster.chief().Wait(kWhole);
  INFO(cluster.Logs() << "successor:\n" << worker->Output());
  REQUIRE(code == 0);
  CHECK(worker->Wait(kWhole) == 0);
  CHECK(Losses(nlohmann::json::parse(cluster.Summary())) == undisturbed);
}

TEST_CASE("A ps that holds gradients in their messages ends in order when it is told to") {
  JobText job = Job("shared_memory: OFF");
  job.max_steps = 1'000'000;
  Cluster cluster(1, 2);
  cluster.StartAll(job);
  const auto held_bytes = [&cluster] {
    const auto status = FetchStatus(cluster.spec().ps[0], absl::Seconds(2));
    return status.ok() ? status->shard().held_bytes() : 0;
  };
  constexpr uint64_t kKernelBytes = uint64_t{2} << 20;
  std::deque<Process> successors;
  Process* worker = &cluster.worker(1);
  for (int step = 5; step <= 50; step += 5) {
    REQUIRE(cluster.WaitForStep(step, kWhole));
    worker->Signal(SIGKILL);
    REQUIRE(worker->Wait(kWhole) == 137);
    const absl::Time deadline = absl::Now() + absl::Seconds(5);
    while (held_bytes() < kKernelBytes && absl::Now() < deadline) {
      CHECK_FALSE(cluster.ps(0).Wait(absl::Milliseconds(50)));
    }
    if (held_bytes() >= kKernelBytes) break;
    // It was killed when the kernel's gradient had gone: that variable may be closed.
    worker = &successors.emplace_back(cluster.Worker(1));
  }
  REQUIRE(held_bytes() >= kKernelBytes);
  cluster.ps(0).Signal(SIGTERM);
  INFO(cluster.Logs());
  CHECK(cluster.ps(0).Wait(kWhole) == 143);
}

}  // namespace
}  // namespace lockstep::test
