// Processes of a running job that are started again at other addresses: the file of the cluster
// spec changes, SIGHUP has it read again, and the job goes on to the bits of a run without any of
// that.
#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/time/time.h"
#include "tests/integration/training_run.h"
#include "tests/support/process.h"
#include "tests/support/wait.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr int kSteps = 300;
// Longer than it takes to start processes and to make copies.
constexpr int kLongSteps = 600;
constexpr absl::Duration kSlowStep = absl::Milliseconds(10);
const std::vector<std::string> kShortLease = {"--lease=2"};

JobText Job(int steps, const std::string& sync = "") {
  return {.max_steps = steps, .sync = sync, .checkpoint = "folder: 'checkpoints' every_steps: 50"};
}

std::map<std::string, std::string> LastTensors(const Cluster& cluster, int steps) {
  return TensorsOf(cluster.folder().Path(absl::StrCat("checkpoints/ckpt-", steps)));
}

// The last checkpoint of a run in which nothing moves.
const std::map<std::string, std::string>& CalmTensors(int steps) {
  static std::map<int, std::map<std::string, std::string>> tensors;
  if (!tensors.contains(steps)) {
    Cluster cluster(2, 2);
    cluster.StartAll(Job(steps));
    Finish(cluster);
    tensors[steps] = LastTensors(cluster, steps);
  }
  return tensors[steps];
}

// Starts a job, and returns when it has a checkpoint.
void StartAndSave(Cluster& cluster, const JobText& job,
                  const std::vector<std::string>& chief_flags = {}) {
  const std::string checkpoints = cluster.folder().Path("checkpoints");
  std::filesystem::create_directory(checkpoints);  // to be watched
  cluster.SlowDown(kSlowStep);
  cluster.StartAll(job, chief_flags);
  REQUIRE(WaitForText(checkpoints + "/LATEST", "ckpt-", kWhole));
}

void Kill(Process& process) {
  process.Signal(SIGKILL);
  REQUIRE(process.Wait(kWhole) == 128 + SIGKILL);
}

// Sends SIGHUP, and returns when the process says that this task has moved to its address.
void TellMoved(const Cluster& cluster, Process& process, Role role, int index) {
  process.Signal(SIGHUP);
  const std::string line = absl::StrCat("cluster spec: ", Name(role), " ", index, " moved from ");
  INFO(line << process.Output());
  REQUIRE(process.WaitForOutput(line, kWhole));
  CHECK_THAT(process.Output(), Contains(" to " + cluster.spec().AddressOf(role, index)));
}

TEST_CASE("a ps moves: every ps goes back to a checkpoint, and no other process ends") {
  const int moved = GENERATE(0, 1);
  const bool is_told_first = moved == 0;
  CAPTURE(moved);
  Cluster cluster(2, 2);
  StartAndSave(cluster, Job(kSteps));
  Kill(cluster.ps(moved));
  cluster.Move(Role::kPs, moved);
  if (!is_told_first) cluster.StartPs(moved);
  // The chief tells the others.
  TellMoved(cluster, cluster.chief(), Role::kPs, moved);
  if (is_told_first) cluster.StartPs(moved);
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["start_step"] >= 50);
  CHECK(LastTensors(cluster, kSteps) == CalmTensors(kSteps));
  for (int i = 0; i < 2; ++i) {
    CHECK_THAT(cluster.worker(i).Output(),
               Contains(absl::StrCat("cluster spec: ps ", moved, " moved from ")));
  }
}

TEST_CASE("a ps moves whose shard has a copy: training goes on, and it keeps the new copies") {
  const int moved = GENERATE(0, 1);
  CAPTURE(moved);
  Cluster cluster(2, 2);
  StartAndSave(cluster, Job(kLongSteps, "ps_replicas: 1"));
  Kill(cluster.ps(moved));
  cluster.Move(Role::kPs, moved);
  TellMoved(cluster, cluster.chief(), Role::kPs, moved);
  cluster.StartPs(moved);
  const bool has_copies =
      cluster.chief().WaitForOutput("the job survives the loss of any one ps again", kWhole);
  {
    INFO(cluster.Logs());
    REQUIRE(has_copies);
  }
  // Now the one that has moved serves both shards.
  Kill(cluster.ps(1 - moved));
  cluster.StartPs(1 - moved);
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["start_step"] == 0);  // nobody went back to a checkpoint
  CHECK(LastTensors(cluster, kLongSteps) == CalmTensors(kLongSteps));
}

TEST_CASE("a chief moves: workers and ps that have read the new spec go on with it") {
  Cluster cluster(2, 2);
  StartAndSave(cluster, Job(kSteps));
  Kill(cluster.chief());
  cluster.Move(Role::kChief, 0);
  for (int i = 0; i < 2; ++i) {
    TellMoved(cluster, cluster.ps(i), Role::kChief, 0);
    TellMoved(cluster, cluster.worker(i), Role::kChief, 0);
  }
  cluster.StartChief();
  Finish(cluster);
  CHECK_THAT(cluster.chief().Output(), Contains("taking over at step"));
  CHECK(LastTensors(cluster, kSteps) == CalmTensors(kSteps));
}

TEST_CASE("a standby moves: the chief that commands tells all others where it is") {
  Cluster cluster(2, 2, 2);
  cluster.SlowDown(kSlowStep);
  cluster.StartAll(Job(kLongSteps), kShortLease);
  cluster.StartStandby(1, kShortLease);
  REQUIRE(cluster.chief(1).WaitForOutput(" commands, with a lease of 2.0 s", kWhole));
  REQUIRE(cluster.WaitForStep(100, kWhole));
  Kill(cluster.chief(1));
  cluster.Move(Role::kChief, 1);
  TellMoved(cluster, cluster.chief(0), Role::kChief, 1);
  for (int i = 0; i < 2; ++i) {
    REQUIRE(cluster.worker(i).WaitForOutput("cluster spec: chief 1 moved from ", kWhole));
  }
  cluster.StartStandby(1, kShortLease);
  REQUIRE(cluster.chief(1).WaitForOutput(" commands, with a lease of 2.0 s", kWhole));
  Kill(cluster.chief(0));
  const auto code = cluster.chief(1).Wait(kWhole);
  INFO(cluster.Logs());
  CHECK(code == 0);
  CHECK_THAT(cluster.chief(1).Output(), Contains("taking over at step"));
  for (int i = 0; i < 2; ++i) {
    CHECK(cluster.worker(i).Wait(kWhole) == 0);
    CHECK(cluster.ps(i).Wait(kWhole) == 0);
  }
  CHECK(LastTensors(cluster, kLongSteps) == CalmTensors(kLongSteps));
}

TEST_CASE("a worker moves: it is refused until the chief has read the new spec") {
  Cluster cluster(2, 2);
  StartAndSave(cluster, Job(kSteps), kShortLease);
  Kill(cluster.worker(1));
  cluster.Move(Role::kWorker, 1);
  cluster.StartWorker(1);
  CHECK(cluster.worker(1).Wait(kWhole) == 78);
  CHECK_THAT(cluster.worker(1).Output(),
             Contains("worker 1 is ") && Contains(cluster.spec().workers[1]) && Contains("SIGHUP"));
  TellMoved(cluster, cluster.chief(), Role::kWorker, 1);
  cluster.StartWorker(1);
  Finish(cluster);
  CHECK_THAT(cluster.chief().Output(),
             Contains(absl::StrCat("worker 1 (", cluster.spec().workers[1], ") has registered")));
  CHECK(LastTensors(cluster, kSteps) == CalmTensors(kSteps));
}

TEST_CASE("a spec that is broken, or changes what may not change, is refused by name") {
  Cluster cluster(2, 2);
  StartAndSave(cluster, Job(kLongSteps));
  const std::string spec = cluster.folder().Read("cluster.json");
  const std::string ps_0 = cluster.spec().ps[0], ps_1 = cluster.spec().ps[1];
  const auto check = [&](Process& process, const std::string& text, const std::string& words) {
    cluster.folder().Write("cluster.json", text);
    process.Signal(SIGHUP);
    INFO(words << process.Output());
    CHECK(process.WaitForOutput(words, kWhole));
    CHECK_THAT(process.Output(),
               Contains("is not used, the one before stays") && Contains("Remedy: "));
  };
  for (Process* process : {&cluster.chief(), &cluster.ps(0), &cluster.worker(0)}) {
    check(*process, spec.substr(0, spec.size() / 2), "not JSON");
    check(*process, absl::StrReplaceAll(spec, {{ps_1, ps_1 + "\", \"127.0.0.1:7"}}),
          "ps: the job runs with 2 addresses, got 3");
    check(*process, absl::StrReplaceAll(spec, {{ps_0, ps_1}, {ps_1, ps_0}}),
          absl::StrCat("ps 0: ", ps_1, " was the address of ps 1"));
  }
  check(cluster.chief(), absl::StrReplaceAll(spec, {{cluster.spec().chief, "127.0.0.1:7"}}),
        "chief 0, which is this process, listens on ");
  check(cluster.ps(1), absl::StrReplaceAll(spec, {{ps_1, "127.0.0.1:7"}}),
        "ps 1, which is this process, listens on ");
  CHECK(cluster.chief().running());
  std::filesystem::remove(cluster.spec_path());
  cluster.chief().Signal(SIGHUP);
  CHECK(cluster.chief().WaitForOutput("No such file", kWhole));
  Finish(cluster);
  CHECK(LastTensors(cluster, kLongSteps) == CalmTensors(kLongSteps));
}

}  // namespace
}  // namespace lockstep::test
