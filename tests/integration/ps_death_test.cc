// Real jobs in which a ps is killed: how everybody ends, what they say, and how the job goes on.
#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/integration/training_run.h"
#include "tests/support/process.h"
#include "tests/support/wait.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);
// Seconds: a job that is still there when its first checkpoint has been seen.
constexpr int kSteps = 300;
constexpr absl::Duration kSlowStep = absl::Milliseconds(5);
constexpr int kRetryable = 138;

// The checkpoint folder is relative to the job, so that each cluster has its own.
JobText Job() {
  return {.max_steps = kSteps, .checkpoint = "folder: 'checkpoints' every_steps: 20"};
}

// Starts a job, and returns when it has a checkpoint.
void StartAndSave(Cluster& cluster, const std::vector<std::string>& chief_flags,
                  absl::Duration step = kSlowStep) {
  const std::string checkpoints = cluster.folder().Path("checkpoints");
  std::filesystem::create_directory(checkpoints);  // to be watched
  cluster.SlowDown(step);
  cluster.StartAll(Job(), chief_flags);
  REQUIRE(WaitForText(checkpoints + "/LATEST", "ckpt-", kWhole));
}

std::string NameOfPs(const Cluster& cluster, int index) {
  return absl::StrCat("ps ", index, " (", cluster.spec().ps[index], ")");
}

// All that is left of a cluster of two ps ends with 138, and says that it is about this ps.
void CheckAllNameThePs(Cluster& cluster, int lost) {
  Process& chief = cluster.chief();
  Process& other_ps = cluster.ps(1 - lost);
  const auto code = chief.Wait(kWhole);
  const auto ps = other_ps.Wait(kWhole);
  INFO(cluster.Logs());
  CHECK(code == kRetryable);
  CHECK_THAT(chief.Output(), Contains(NameOfPs(cluster, lost)) && Contains("Remedy: ") &&
                                 Contains("the chief with --resume"));
  CHECK(ps == kRetryable);
  CHECK_THAT(other_ps.Output(),
             Contains("the job was given up: ") && Contains(NameOfPs(cluster, lost)));
  for (int i = 0; i < 2; ++i) {
    CHECK(cluster.worker(i).Wait(kWhole) == kRetryable);
    CHECK_THAT(cluster.worker(i).Output(), Contains(NameOfPs(cluster, lost)));
  }
}

// Of a run that nothing disturbs.
struct Calm {
  Calm() {
    Cluster cluster(2, 2);
    cluster.StartAll(Job());
    test_loss = Finish(cluster)["test_loss"];
    tensors = LastTensors(cluster);
  }
  static std::map<std::string, std::string> LastTensors(const Cluster& cluster) {
    return TensorsOf(cluster.folder().Path(absl::StrCat("checkpoints/ckpt-", kSteps)));
  }
  double test_loss = 0;
  std::map<std::string, std::string> tensors;
};

// Every process that is left ends well, and the result is that of a run without the fault.
nlohmann::json CheckEndsAsIfCalm(Cluster& cluster) {
  static const Calm calm;
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["start_step"] >= 20);
  CHECK(summary["steps"] == kSteps);
  CHECK(summary["test_loss"] == calm.test_loss);
  CHECK(Calm::LastTensors(cluster) == calm.tensors);
  return summary;
}

void KillPs(Cluster& cluster, const std::vector<int>& indices, int signal = SIGKILL) {
  for (const int index : indices) {
    cluster.ps(index).Signal(signal);
    REQUIRE(cluster.ps(index).Wait(kWhole) == 128 + signal);
  }
  for (const int index : indices) cluster.StartPs(index);
}

TEST_CASE(
    "ps that are killed and started again take the job back to a checkpoint, all others stay") {
  Cluster cluster(2, 2);
  StartAndSave(cluster, {});
  int64_t step = 0;
  for (const std::vector<int>& victims : std::vector<std::vector<int>>{{1}, {0}, {0, 1}}) {
    REQUIRE(cluster.WaitForStep(step += 60, kWhole));
    KillPs(cluster, victims);
  }
  const nlohmann::json summary = CheckEndsAsIfCalm(cluster);
  CHECK_THAT(summary["warnings"].dump(), Contains("was started again and has lost its variables") &&
                                             Contains("every ps goes back to "));
}

TEST_CASE("a job that began from a checkpoint elsewhere goes back there until it has saved") {
  Cluster first(2, 2);
  JobText job = Job();
  job.max_steps = 40;
  first.StartAll(job);
  Finish(first);
  Cluster cluster(2, 2);
  cluster.SlowDown(kSlowStep);
  job = Job();
  job.checkpoint = "folder: 'checkpoints'";
  cluster.StartAll(job, {"--restore=" + first.folder().Path("checkpoints/ckpt-40")});
  REQUIRE(cluster.WaitForStep(60, kWhole));
  KillPs(cluster, {1});
  const nlohmann::json summary = CheckEndsAsIfCalm(cluster);
  CHECK_THAT(summary["warnings"].dump(), Contains("every ps goes back to ") && Contains("ckpt-40"));
}

TEST_CASE("a ps that is told to stop costs what one that is killed does") {
  Cluster cluster(2, 2);
  StartAndSave(cluster, {}, kSlowStep * 4);  // it serves for a second more
  int64_t step = 0;
  for (const int index : {1, 0}) {
    REQUIRE(cluster.WaitForStep(step += 60, kWhole));
    KillPs(cluster, {index}, SIGTERM);
  }
  CheckEndsAsIfCalm(cluster);
}

TEST_CASE("a chief that dies while the ps go back has a successor that resumes") {
  Cluster cluster(2, 2);
  StartAndSave(cluster, {});
  KillPs(cluster, {0});
  REQUIRE(cluster.chief().WaitForOutput("has lost its variables", kWhole));
  cluster.chief().Signal(SIGKILL);
  REQUIRE(cluster.chief().Wait(kWhole) == 137);
  cluster.StartChief({"--resume"});
  CheckEndsAsIfCalm(cluster);
}

TEST_CASE("a ps that stays away ends the job after --start_timeout, and --resume goes on") {
  Cluster cluster(2, 2);
  StartAndSave(cluster, {"--start_timeout=2"});
  cluster.ps(1).Signal(SIGKILL);
  CheckAllNameThePs(cluster, 1);
  cluster.StartAll(Job(), {"--resume"});
  CheckEndsAsIfCalm(cluster);
}

TEST_CASE("a ps that is started again ends a job without checkpoints at once") {
  Cluster cluster(2, 2);
  JobText job = Job();
  job.max_steps = 1'000'000;
  job.checkpoint = "";
  cluster.StartAll(job);
  REQUIRE(cluster.WaitForStep(0, kWhole));
  cluster.ps(0).Signal(SIGKILL);
  REQUIRE(cluster.ps(0).Wait(kWhole) == 137);
  Process successor(cluster.Ps(0));
  CheckAllNameThePs(cluster, 0);
  CHECK(successor.running());  // for the next chief
}

}  // namespace
}  // namespace lockstep::test
