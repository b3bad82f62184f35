// Processes that move where every process proves who it is: SIGHUP has the changed cluster spec
// read again, and the job goes on to the bits of a run in which nothing moves.
#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "deploy/cli/local_cluster.h"
#include "tests/integration/training_run.h"
#include "tests/support/process.h"
#include "tests/support/wait.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr int kSteps = 300;
constexpr absl::Duration kSlowStep = absl::Milliseconds(5);

// Starts a job, and returns when it has a checkpoint.
void StartAndSave(Cluster& cluster) {
  const std::string checkpoints = cluster.folder().Path("checkpoints");
  std::filesystem::create_directory(checkpoints);  // to be watched
  cluster.SlowDown(kSlowStep);
  cluster.StartAll({.max_steps = kSteps, .checkpoint = "folder: 'checkpoints' every_steps: 50"},
                   {"--lease=2"});
  REQUIRE(WaitForText(checkpoints + "/LATEST", "ckpt-", kWhole));
}

std::map<std::string, std::string> LastTensors(const Cluster& cluster) {
  return TensorsOf(cluster.folder().Path(absl::StrCat("checkpoints/ckpt-", kSteps)));
}

// The last checkpoint of a run in which nothing moves.
const std::map<std::string, std::string>& CalmTensors() {
  static std::map<std::string, std::string> tensors;
  if (tensors.empty()) {
    Cluster cluster(2, 2);
    StartAndSave(cluster);
    Finish(cluster);
    tensors = LastTensors(cluster);
  }
  return tensors;
}

void Kill(Process& process) {
  process.Signal(SIGKILL);
  REQUIRE(process.Wait(kWhole) == 128 + SIGKILL);
}

// Returns when the process says that this task has moved to its address.
void AwaitMove(const Cluster& cluster, Process& process, Role role, int index) {
  const std::string line = absl::StrCat("cluster spec: ", Name(role), " ", index, " moved from ");
  INFO(line << process.Output());
  REQUIRE(process.WaitForOutput(line, kWhole));
  CHECK_THAT(process.Output(), Contains(" to " + cluster.spec().AddressOf(role, index)));
}

TEST_CASE("with a token or certificates a ps and a worker move, and the chief tells the others") {
  const bool has_tls = GENERATE(false, true);
  CAPTURE(has_tls);
  Cluster cluster(2, 2);
  has_tls ? cluster.UseTls() : cluster.UseToken();
  StartAndSave(cluster);
  Kill(cluster.ps(1));
  Kill(cluster.worker(1));
  cluster.Move(Role::kPs, 1);
  cluster.Move(Role::kWorker, 1);
  if (has_tls) cluster.UseTls();  // certificates for the new addresses
  for (Process* process : {&cluster.chief(), &cluster.ps(0)}) {
    process->Signal(SIGHUP);
    AwaitMove(cluster, *process, Role::kPs, 1);
    AwaitMove(cluster, *process, Role::kWorker, 1);
  }
  cluster.StartPs(1);
  cluster.StartWorker(1);
  AwaitMove(cluster, cluster.worker(0), Role::kPs, 1);
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["start_step"] >= 50);  // the ps that died had no copy
  CHECK(LastTensors(cluster) == CalmTensors());
}

TEST_CASE("with a token or certificates the only chief moves to where ps and workers are told") {
  const bool has_tls = GENERATE(false, true);
  CAPTURE(has_tls);
  Cluster cluster(2, 2);
  has_tls ? cluster.UseTls() : cluster.UseToken();
  StartAndSave(cluster);
  Kill(cluster.chief());
  cluster.Move(Role::kChief, 0);
  if (has_tls) cluster.UseTls();
  for (int i = 0; i < 2; ++i) {
    for (Process* process : {&cluster.ps(i), &cluster.worker(i)}) {
      process->Signal(SIGHUP);
      AwaitMove(cluster, *process, Role::kChief, 0);
    }
  }
  cluster.StartChief({"--lease=2"});
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["steps"] == kSteps);
  CHECK_THAT(cluster.chief().Output(), Contains("taking over at step"));
  CHECK(LastTensors(cluster) == CalmTensors());
}

TEST_CASE("with a token the chief follows no cluster spec to another machine") {
  Cluster cluster(1, 1);
  cluster.UseToken();
  StartAndSave(cluster);
  ClusterSpec changed = cluster.spec();
  changed.ps[0] = "192.0.2.1:2222";
  cluster.folder().Write("cluster.json", deploy::ClusterJsonText(changed));
  cluster.chief().Signal(SIGHUP);
  INFO(cluster.Logs());
  REQUIRE(cluster.chief().WaitForOutput("192.0.2.1:2222 unencrypted. Remedy: ", kWhole));
  CHECK_THAT(cluster.chief().Output(), Contains("is not used, the one before stays"));
  CHECK(Finish(cluster)["steps"] == kSteps);
}

}  // namespace
}  // namespace lockstep::test
