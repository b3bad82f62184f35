// Real jobs in which a ps is killed: how everybody ends, what they say, and how the job goes on.
#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
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
constexpr int kSteps = 1000;
constexpr int kRetryable = 138;

// The checkpoint folder is relative to the job, so that each cluster has its own.
JobText Job() {
  return {.max_steps = kSteps, .checkpoint = "folder: 'checkpoints' every_steps: 50"};
}

// Starts a job, and returns when it has a checkpoint.
void StartAndSave(Cluster& cluster, const std::vector<std::string>& chief_flags) {
  const std::string checkpoints = cluster.folder().Path("checkpoints");
  std::filesystem::create_directory(checkpoints);  // to be watched
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

double UndisturbedLoss() {
  Cluster cluster(2, 2);
  cluster.StartAll(Job());
  return Finish(cluster)["test_loss"];
}

// All processes again, with the job's own folder: the result is that of a run without the fault.
void CheckGoesOn(Cluster& cluster, const std::string& flag) {
  cluster.StartAll(Job(), {flag});
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["start_step"] >= 50);
  CHECK(summary["steps"] == kSteps);
  static const double undisturbed = UndisturbedLoss();
  CHECK(summary["test_loss"] == undisturbed);
}

TEST_CASE("a ps that is killed ends the job after --start_timeout, and --resume goes on") {
  Cluster cluster(2, 2);
  StartAndSave(cluster, {"--start_timeout=2"});
  cluster.ps(1).Signal(SIGKILL);
  CheckAllNameThePs(cluster, 1);
  CheckGoesOn(cluster, "--resume");
}

TEST_CASE("a ps that is killed and started again ends the job at once, and --restore goes on") {
  Cluster cluster(2, 2);
  StartAndSave(cluster, {});
  cluster.ps(0).Signal(SIGKILL);
  REQUIRE(cluster.ps(0).Wait(kWhole) == 137);
  {
    Process successor(cluster.Ps(0));
    CheckAllNameThePs(cluster, 0);
    CHECK(successor.running());  // for the next chief
  }
  CheckGoesOn(cluster, "--restore");
}

}  // namespace
}  // namespace lockstep::test
