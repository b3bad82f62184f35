// Whole jobs whose tensors lie in shared memory, whole in every bit, and when somebody is killed.
#include <signal.h>

#include <catch2/catch.hpp>
#include <fstream>
#include <string>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Seconds(60);

JobText Job(const std::string& transport, const std::string& more = "") {
  return {.global_batch = 24,
          .max_steps = 40,
          .optimizer = "momentum { momentum: 0.9 } learning_rate { base: 0.1 }",
          .model = kPlainModel,
          .more = absl::StrCat("seed: 7 transport { shared_memory: ", transport, " } ", more)};
}

// Segments of ours that the process has mapped: lines of /proc/PID/maps.
int Segments(const Process& process) {
  std::ifstream maps(absl::StrCat("/proc/", process.pid(), "/maps"));
  std::string line;
  int segments = 0;
  while (std::getline(maps, line)) segments += absl::StrContains(line, "/memfd:lockstep-");
  return segments;
}

// The same, after as many steps as it takes to become `wanted`, within reason: memory is exchanged,
// and let go, beside training.
int SegmentsInTime(Cluster& cluster, const Process& process, int wanted) {
  for (int64_t step = 20; Segments(process) != wanted && step < 100'000; step += 500) {
    if (!cluster.WaitForStep(step, kWhole)) break;
  }
  return Segments(process);
}

TEST_CASE(
    "Messages, copies from shared memory and values in place give the same losses to the bit") {
  for (const std::string more : {"", "towers: 2", "max_part_bytes: 800"}) {
    CAPTURE(more);
    const std::vector<double> losses = LossesOf(2, 2, Job("OFF", more));
    REQUIRE(losses.size() == 40);
    CHECK(losses == LossesOf(2, 2, Job("COPY", more)));
    CHECK(losses == LossesOf(2, 2, Job("MAP", more)));
  }
}

TEST_CASE("Tensors lie in shared memory unless the job says otherwise") {
  for (const bool shares : {true, false}) {
    Cluster cluster(1, 2);
    JobText job = Job(shares ? "COPY" : "OFF");
    job.max_steps = 1'000'000;
    cluster.StartAll(job);
    REQUIRE(cluster.WaitForStep(20, kWhole));
    INFO(cluster.Logs());
    // The ps has its own and both workers'.
    CHECK(SegmentsInTime(cluster, cluster.ps(0), shares ? 3 : 0) == (shares ? 3 : 0));
    CHECK(SegmentsInTime(cluster, cluster.worker(0), shares ? 2 : 0) == (shares ? 2 : 0));
    const std::string log = cluster.worker(0).Output();
    CHECK(absl::StrContains(log, "shares memory with") == shares);
  }
}

TEST_CASE("The memory of a worker that is killed goes with it, and its successor brings its own") {
  Cluster cluster(1, 2);
  JobText job = Job("MAP");
  job.sync = "quorum_policy: SHRINK";
  job.max_steps = 1'000'000;
  cluster.StartAll(job, {"--lease=2"});
  REQUIRE(cluster.WaitForStep(20, kWhole));
  REQUIRE(SegmentsInTime(cluster, cluster.ps(0), 3) == 3);
  cluster.worker(1).Signal(SIGKILL);
  REQUIRE(cluster.worker(1).Wait(kWhole) == 137);
  REQUIRE(cluster.chief().WaitForOutput("steps go on with 1 of 2", kWhole));
  INFO(cluster.Logs());
  CHECK(SegmentsInTime(cluster, cluster.ps(0), 2) == 2);
  Process successor(cluster.Worker(1));
  REQUIRE(successor.WaitForOutput("shares memory with", kWhole));
  CHECK(SegmentsInTime(cluster, cluster.ps(0), 3) == 3);
  CHECK(SegmentsInTime(cluster, cluster.worker(0), 2) == 2);
}

TEST_CASE("A worker reads on in the memory of a ps that is killed") {
  Cluster cluster(1, 2);
  JobText job = Job("MAP");
  job.max_steps = 1'000'000;
  cluster.StartAll(job);
  REQUIRE(cluster.WaitForStep(20, kWhole));
  REQUIRE(SegmentsInTime(cluster, cluster.worker(0), 2) == 2);
  cluster.ps(0).Signal(SIGKILL);
  REQUIRE(cluster.ps(0).Wait(kWhole) == 137);
  INFO(cluster.Logs());
  CHECK(Segments(cluster.worker(0)) == 2);
  CHECK(cluster.worker(0).running());
}

}  // namespace
}  // namespace lockstep::test
