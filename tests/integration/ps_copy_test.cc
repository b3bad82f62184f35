// Real jobs with sync.ps_replicas, in which ps are lost: the copy serves the workers, and the job
// goes on where it was.
#include <signal.h>

#include <catch2/catch.hpp>
#include <filesystem>
#include <map>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/integration/table_job.h"
#include "tests/integration/training_run.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr int kSteps = 400;
// Longer than it takes to start a ps twice and to make copies there.
constexpr int kLongSteps = 1000;
constexpr absl::Duration kSlowStep = absl::Milliseconds(5);
constexpr absl::Duration kSlowLongStep = absl::Milliseconds(10);

JobText Job(int steps = kSteps) {
  return {.max_steps = steps,
          .sync = "ps_replicas: 1",
          .checkpoint = "folder: 'checkpoints' every_steps: 160"};
}

// A save that meets the death of a ps fails, with a warning.
JobText JobThatSavesLast() {
  JobText job = Job();
  job.checkpoint = "folder: 'checkpoints'";
  return job;
}

std::map<std::string, std::string> LastTensors(const Cluster& cluster, int steps = kSteps) {
  return TensorsOf(cluster.folder().Path(absl::StrCat("checkpoints/ckpt-", steps)));
}

// Of a run without copies that nothing disturbs.
struct Calm {
  explicit Calm(int steps) {
    Cluster cluster(2, 2);
    JobText job = Job(steps);
    job.sync = "";
    cluster.StartAll(job, {"--record_losses"});
    losses = Losses(Finish(cluster));
    tensors = LastTensors(cluster, steps);
  }
  std::vector<double> losses;
  std::map<std::string, std::string> tensors;
};

const Calm& CalmRun() {
  static const Calm calm(kSteps);
  return calm;
}

void KillAndStart(Cluster& cluster, int index) {
  cluster.ps(index).Signal(SIGKILL);
  REQUIRE(cluster.ps(index).Wait(kWhole) == 128 + SIGKILL);
  cluster.StartPs(index);
}

const Calm& LongCalmRun() {
  static const Calm calm(kLongSteps);
  return calm;
}

void CheckWentOn(Cluster& cluster) {
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["start_step"] == 0);
  INFO(summary["warnings"].dump());
  CHECK(summary["warnings"].empty());  // nobody went back to a checkpoint
  CHECK(Losses(summary) == CalmRun().losses);
  CHECK(LastTensors(cluster) == CalmRun().tensors);
}

TEST_CASE("a job whose shards have copies ends as one without") {
  Cluster cluster(2, 2);
  cluster.StartAll(Job());
  CheckWentOn(cluster);
}

TEST_CASE("the copy of a ps that is killed serves the workers, and the job goes on") {
  const int lost = GENERATE(0, 1);
  Cluster cluster(2, 2);
  cluster.SlowDown(kSlowStep);
  cluster.StartAll(JobThatSavesLast());
  REQUIRE(cluster.WaitForStep(100, kWhole));
  KillAndStart(cluster, lost);
  REQUIRE(cluster.chief().WaitForOutput(absl::StrCat("ps ", lost, " ("), kWhole));
  CheckWentOn(cluster);
  CHECK_THAT(cluster.chief().Output(), Contains("Its copy serves the workers now"));
}

TEST_CASE("a ps that is told to end says so, and its copy serves the workers") {
  const int leaves = GENERATE(0, 1);
  Cluster cluster(2, 2);
  cluster.SlowDown(2 * kSlowLongStep);  // it serves for another second
  // Nobody waits for it.
  cluster.StartAll(JobThatSavesLast(), {"--lease=60"});
  REQUIRE(cluster.WaitForStep(100, kWhole));
  cluster.ps(leaves).Signal(SIGTERM);
  REQUIRE(cluster.chief().WaitForOutput("Its copy serves the workers now", kWhole));
  REQUIRE(cluster.ps(leaves).Wait(kWhole) == 128 + SIGTERM);
  cluster.StartPs(leaves);
  CHECK_THAT(cluster.chief().Output(), Contains("it was told to end"));
  CheckWentOn(cluster);
}

TEST_CASE("a ps that is killed while versions wait to be saved and evaluated costs these alone") {
  Cluster cluster(2, 2);
  JobText job = Job();
  job.checkpoint = "folder: 'checkpoints' every_steps: 5";
  job.evaluation = "every_steps: 5";
  cluster.SlowDown(kSlowStep);
  cluster.StartAll(job);
  REQUIRE(cluster.WaitForStep(100, kWhole));
  KillAndStart(cluster, 1);
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["start_step"] == 0);
  CHECK(Losses(summary) == CalmRun().losses);
  CHECK(LastTensors(cluster) == CalmRun().tensors);
}

// The second ps dies while it writes its shard of the checkpoint of this step.
struct DyingSave {
  DyingSave(Cluster* cluster, int step) : folder(cluster->folder().Path("checkpoints")) {
    JobText job = Job();
    job.checkpoint = absl::StrCat("folder: '", folder, "' every_steps: 80 keep_last: 5");
    cluster->SetDiskFaults(1, absl::StrCat(folder, ",write,ckpt-", step, "/,1,kill_half"));
    cluster->SlowDown(kSlowStep);
    cluster->StartAll(job, {"--record_losses"});
    REQUIRE(cluster->ps(1).Wait(kWhole) == 128 + SIGKILL);
  }
  absl::StatusOr<Manifest> ManifestOf(int step) const {
    return ReadManifest(absl::StrCat(folder, "/ckpt-", step));
  }

  const std::string folder;
};

TEST_CASE("a checkpoint that a ps dies in is left out, the ones before and after are whole") {
  Cluster cluster(2, 2);
  const DyingSave save(&cluster, 160);
  CHECK(save.ManifestOf(80).ok());
  cluster.StartPs(1);
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["start_step"] == 0);
  CHECK_THAT(summary["warnings"].dump(), Contains("no checkpoint at step 160: "));
  CHECK(Losses(summary) == CalmRun().losses);
  CHECK(LastTensors(cluster) == CalmRun().tensors);
  for (const int step : {80, 160, 240, 320, 400}) {
    CAPTURE(step);
    CHECK(save.ManifestOf(step).ok() == (step != 160));
  }
}

TEST_CASE("the copy of a ps that dies in the last checkpoint writes its shard") {
  Cluster cluster(2, 2);
  const DyingSave save(&cluster, kSteps);
  REQUIRE(cluster.chief().Wait(kWhole) == 0);
  const nlohmann::json summary = nlohmann::json::parse(cluster.Summary());
  CHECK(summary["start_step"] == 0);
  CHECK(Losses(summary) == CalmRun().losses);
  CHECK(LastTensors(cluster) == CalmRun().tensors);
}

// The copy has not kept the last version, as its ps had.
TEST_CASE("a chief that follows one killed before the last checkpoint writes that from a copy") {
  Cluster cluster(2, 2);
  const std::string obstacle = cluster.folder().Path("checkpoints/LATEST");
  JobText job = Job();
  job.checkpoint = "folder: 'checkpoints'";
  cluster.SlowDown(kSlowStep);
  cluster.StartAll(job);
  REQUIRE(cluster.WaitForStep(1, kWhole));
  REQUIRE(std::filesystem::create_directory(obstacle));
  REQUIRE(cluster.chief().WaitForOutput("no checkpoint at step 400", kWhole));
  cluster.ps(1).Signal(SIGKILL);
  REQUIRE(cluster.chief().WaitForOutput("Its copy serves the workers now", kWhole));
  cluster.chief().Signal(SIGKILL);
  REQUIRE(cluster.chief().Wait(kWhole) == 128 + SIGKILL);
  REQUIRE(std::filesystem::remove(obstacle));
  cluster.StartChief({"--resume"});
  REQUIRE(cluster.chief().Wait(kWhole) == 0);
  CHECK(LastTensors(cluster) == CalmRun().tensors);
}

// Each batch reads rows of the version, so that no worker has all of it when the ps is killed.
TEST_CASE("an evaluation whose version goes with its ps is given up, and the last one is made") {
  Cluster cluster(2, 2);
  const TableJob table;
  JobText job = table.Text("", kSteps);
  job.sync = "ps_replicas: 1";
  job.evaluation = "every_steps: 50 batch: 1";
  cluster.folder().Write("train.csv", TableExamples(0, 240));
  cluster.folder().Write("test.csv", TableExamples(1000, 4000));
  job.data = "csv { train: 'train.csv' test: 'test.csv' label_column: '4' no_header: true }";
  cluster.SlowDown(kSlowStep);
  cluster.StartAll(job);
  REQUIRE(cluster.WaitForStep(100, kWhole));
  KillAndStart(cluster, 1);
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["start_step"] == 0);
  CHECK_THAT(cluster.chief().Output(), Contains("the version was lost with ps 1 "));
  REQUIRE_FALSE(summary["evaluations"].empty());
  CHECK(summary["evaluations"].back()["step"] == kSteps);
}

std::string NameOfPs(const Cluster& cluster, int index) {
  return absl::StrCat("ps ", index, " (", cluster.spec().ps[static_cast<size_t>(index)], ")");
}

// That ps `index`, which was started again, keeps the copy of the shard.
void WaitForCopy(Cluster& cluster, int shard, int index) {
  const std::string line = absl::StrCat("the copy of the shard of ", NameOfPs(cluster, shard),
                                        " at ", NameOfPs(cluster, index), " is complete");
  INFO(line);
  REQUIRE(cluster.chief().WaitForOutput(line, kWhole));
}

void WaitForCopiesAt(Cluster& cluster, int index) {
  for (const int shard : {0, 1}) WaitForCopy(cluster, shard, index);
}

TEST_CASE("a ps that is started again keeps the new copies, so that each may be lost in turn") {
  Cluster cluster(2, 2);
  cluster.SlowDown(kSlowLongStep);
  cluster.StartAll(Job(kLongSteps));
  REQUIRE(cluster.WaitForStep(100, kWhole));
  KillAndStart(cluster, 1);
  WaitForCopiesAt(cluster, 1);
  KillAndStart(cluster, 0);
  WaitForCopiesAt(cluster, 0);
  KillAndStart(cluster, 1);
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["start_step"] == 0);
  // A kill may meet a checkpoint, which is left out then.
  for (const nlohmann::json& warning : summary["warnings"]) {
    CHECK_THAT(warning.dump(), Contains("no checkpoint at step "));
  }
  CHECK_THAT(cluster.chief().Output(), Contains("the job survives the loss of any one ps again"));
  CHECK(LastTensors(cluster, kLongSteps) == LongCalmRun().tensors);
}

TEST_CASE("with three ps each shard has its copy at the next one") {
  Cluster cluster(3, 2);
  cluster.SlowDown(kSlowLongStep);
  cluster.StartAll(Job(kLongSteps));
  REQUIRE(cluster.WaitForStep(100, kWhole));
  KillAndStart(cluster, 2);
  REQUIRE(cluster.chief().WaitForOutput(
      "Its copy serves the workers now, at " + NameOfPs(cluster, 0), kWhole));
  for (const int shard : {1, 2}) WaitForCopy(cluster, shard, 2);
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["start_step"] == 0);
  CHECK(summary["warnings"].empty());
  CHECK(LastTensors(cluster, kLongSteps) == LongCalmRun().tensors);
}

TEST_CASE("a chief that follows one that was killed finds the copy that serves") {
  Cluster cluster(2, 2);
  cluster.SlowDown(kSlowStep);
  cluster.StartAll(Job());
  REQUIRE(cluster.WaitForStep(100, kWhole));
  KillAndStart(cluster, 0);
  REQUIRE(cluster.chief().WaitForOutput("Its copy serves the workers now", kWhole));
  REQUIRE(cluster.WaitForStep(200, kWhole));
  cluster.chief().Signal(SIGKILL);
  REQUIRE(cluster.chief().Wait(kWhole) == 128 + SIGKILL);
  cluster.StartChief({"--resume"});
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["start_step"] > 200);
  CHECK(summary["warnings"].empty());
  CHECK(LastTensors(cluster) == CalmRun().tensors);
}

TEST_CASE("a ps that hangs is replaced by its copy after a lease, and takes no part any more") {
  Cluster cluster(2, 2);
  cluster.SlowDown(kSlowStep);
  cluster.StartAll(JobThatSavesLast(), {"--lease=2"});
  REQUIRE(cluster.WaitForStep(100, kWhole));
  cluster.ps(1).Signal(SIGSTOP);
  REQUIRE(cluster.chief().WaitForOutput("Its copy serves the workers now", kWhole));
  cluster.ps(1).Signal(SIGCONT);
  CheckWentOn(cluster);
}

TEST_CASE("a shard that is lost with its copy takes the job back to a checkpoint") {
  Cluster cluster(2, 2);
  cluster.SlowDown(kSlowStep);
  cluster.StartAll(Job());
  REQUIRE(cluster.WaitForStep(180, kWhole));
  for (const int index : {0, 1}) cluster.ps(index).Signal(SIGKILL);
  for (const int index : {0, 1}) {
    REQUIRE(cluster.ps(index).Wait(kWhole) == 128 + SIGKILL);
    cluster.StartPs(index);
  }
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["start_step"] == 160);
  CHECK_THAT(summary["warnings"].dump(), Contains("every ps goes back to "));
  CHECK(LastTensors(cluster) == CalmRun().tensors);
}

}  // namespace
}  // namespace lockstep::test
