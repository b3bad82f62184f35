// Real jobs on a disk that fails, and of which everything is killed while it saves.
#include <signal.h>

#include <catch2/catch.hpp>
#include <memory>
#include <numeric>
#include <random>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/integration/cluster.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr int kForeverSteps = 1'000'000;
constexpr absl::Duration kLongestLife = absl::Milliseconds(60);

// One ps is the first, whose disk fails, and so may the chief's.
enum class Task { kPs, kChief };

std::vector<std::string> Environment(const std::string& faults) {
  if (faults.empty()) return {};
  return {"LD_PRELOAD=" + Binary("tests/support/preloaded_disk_faults.so"),
          "LOCKSTEP_DISK_FAULTS=" + faults};
}

class SavingCluster {
 public:
  SavingCluster(int every_steps, int max_steps) : cluster_(2, 1) {
    job_ = cluster_.WriteJob({.max_steps = max_steps,
                              .checkpoint = absl::StrCat("folder: '", folder(), "' every_steps: ",
                                                         every_steps, " keep_last: 2"),
                              .evaluation = "not_at_end: true"});
  }
  ~SavingCluster() { KillAll(); }

  std::string folder() const { return cluster_.folder().Path("checkpoints"); }
  std::string Summary() const { return cluster_.Summary(); }

  void Start(const std::string& ps_faults, const std::string& chief_faults, absl::Duration step) {
    all_.clear();
    std::vector<std::string> chief = cluster_.Chief(job_);
    chief.push_back("--resume");
    chief.push_back("--drain=2");
    std::vector<std::string> worker = cluster_.Worker(0);
    worker.push_back(absl::StrCat("--sleep=", absl::FormatDuration(step)));
    Add(cluster_.Ps(0), ps_faults);
    Add(cluster_.Ps(1), "");
    Add(worker, "");
    Add(chief, chief_faults);
  }

  Process& ps() { return *all_.front(); }
  Process& chief() { return *all_.back(); }
  Process& of(Task task) { return task == Task::kPs ? ps() : chief(); }

  void KillAll() {
    for (const auto& process : all_) process->Signal(SIGKILL);
    for (const auto& process : all_) process->Wait(kWhole);
  }

  // The newest step that the chief says there is a checkpoint of; -1: none.
  int64_t Acknowledged() {
    const std::string log = chief().Output();
    const std::string mark = absl::StrCat(": checkpoint ", folder(), "/ckpt-");
    // A line that is cut by a kill may lack the end of its number.
    const size_t at = log.rfind(mark, log.rfind('\n'));
    if (at == std::string::npos) return -1;
    int64_t step = -1;
    const size_t begin = at + mark.size();
    REQUIRE(absl::SimpleAtoi(log.substr(begin, log.find('\n', begin) - begin), &step));
    return step;
  }

  std::string Logs() {
    std::string logs;
    for (const auto& process : all_) absl::StrAppend(&logs, process->Output(), "----\n");
    return logs;
  }

 private:
  void Add(const std::vector<std::string>& command, const std::string& faults) {
    all_.push_back(std::make_unique<Process>(command, Environment(faults)));
  }

  Cluster cluster_;
  std::string job_;
  std::vector<std::unique_ptr<Process>> all_;
};

// The step of the checkpoint that the next start takes. Every checksum of it is right.
int64_t Newest(const std::string& folder) {
  const absl::StatusOr<std::string> newest = ResolveCheckpoint(folder);
  INFO(newest.status());
  REQUIRE(newest.ok());
  return ReadManifest(*newest)->step;
}

// The first line with `text`; empty: there is none.
std::string LineWith(const std::string& log, const std::string& text) {
  const size_t at = log.find(text);
  if (at == std::string::npos) return "";
  const size_t begin = log.rfind('\n', at) + 1;
  return log.substr(begin, log.find('\n', at) - begin);
}

TEST_CASE("a job trains to its end on a disk that fails in a new way at each save") {
  constexpr int kSteps = 150;
  SavingCluster cluster(/*every_steps=*/5, kSteps);
  // Each save fails where the one before has failed or later, so each fault is met once.
  struct Row {
    Task task;
    std::string fault;
    std::string told;
  };
  const std::string shard = "/shard-0-of-2.safetensors: cannot ";
  const std::string manifest = "/manifest.json: cannot ";
  const Row rows[] = {
      {Task::kPs, "open,-shard-0,1,ENOSPC", shard + "create: No space left on device"},
      {Task::kPs, "write,-shard-0,1,EIO", shard + "write: Input/output error"},
      {Task::kPs, "sync,-shard-0,1,EIO", shard + "fsync: Input/output error"},
      {Task::kPs, "rename,/shard-0,1,EROFS", shard + "rename to its name: Read-only file system"},
      {Task::kPs, "rename,/shard-0,2,ESTALE", shard + "rename to its name: Stale file handle"},
      {Task::kChief, "open,-manifest,1,EDQUOT", manifest + "create: Disk quota exceeded"},
      {Task::kChief, "sync,-manifest,1,EIO", manifest + "fsync: Input/output error"},
      {Task::kChief, "rename,/manifest,1,EACCES",
       manifest + "rename to its name: Permission denied"},
      {Task::kChief, "rename,/LATEST,1,ENOSPC",
       "/LATEST: cannot rename to its name: No space left on device"},
  };
  std::string ps_faults, chief_faults;
  for (const Row& row : rows) {
    absl::StrAppend(row.task == Task::kPs ? &ps_faults : &chief_faults, cluster.folder(), ",",
                    row.fault, ";");
  }
  // Of the oldest checkpoint, when there are too many. The first that goes is of the save that
  // could not write LATEST.
  absl::StrAppend(&chief_faults, cluster.folder(), ",remove,/manifest,2,EIO");
  cluster.Start(ps_faults, chief_faults, absl::Milliseconds(20));
  const auto code = cluster.chief().Wait(kWhole);
  INFO(cluster.Logs());
  REQUIRE(code == 0);
  CHECK(cluster.ps().Wait(kWhole) == 0);
  const std::string log = cluster.chief().Output();
  for (const Row& row : rows) {
    CAPTURE(row.told);
    CHECK_THAT(LineWith(log, row.told),
               Contains("no checkpoint at step ") && Contains(cluster.folder()));
  }
  const std::string undeleted = "/manifest.json: cannot remove: Input/output error";
  CHECK_THAT(LineWith(log, undeleted), Contains(cluster.folder()));
  CHECK_THAT(cluster.Summary(), Contains(undeleted));
  CHECK(Newest(cluster.folder()) == kSteps);
}

TEST_CASE("a job begins, trains and ends on a disk that takes nothing, and keeps what there was") {
  SavingCluster cluster(/*every_steps=*/5, kForeverSteps);
  cluster.Start("", "", absl::Milliseconds(2));
  REQUIRE(cluster.chief().WaitForOutput(": checkpoint ", kWhole));
  cluster.KillAll();
  const int64_t kept = Newest(cluster.folder());
  const std::string full = absl::StrCat(cluster.folder(), ",write,,*,ENOSPC");
  cluster.Start(full, full, absl::Milliseconds(2));
  // Nobody writes a shard while the folder looks like that of the job before.
  const std::string told = "no checkpoint at step ";
  const bool is_told = cluster.chief().WaitForOutput(told, kWhole);
  INFO(cluster.Logs());
  CHECK(is_told);
  CHECK_THAT(LineWith(cluster.chief().Output(), told),
             Contains("/OWNER.json: cannot write: No space left on device"));
  for (const Task task : {Task::kPs, Task::kChief}) CHECK(cluster.of(task).running());
  CHECK(Newest(cluster.folder()) == kept);
  cluster.chief().Signal(SIGINT);
  const int code = cluster.chief().Wait(kWhole).value_or(-1);
  INFO(cluster.chief().Output());
  CHECK(code == 130);
  CHECK(Newest(cluster.folder()) == kept);
}

TEST_CASE("a start takes the checkpoint before one that cannot be read, and says why") {
  SavingCluster cluster(/*every_steps=*/5, kForeverSteps);
  for (int saves = 0; saves < 2; ++saves) {
    cluster.Start("", "", absl::Milliseconds(2));
    REQUIRE(cluster.chief().WaitForOutput(": checkpoint ", kWhole));
    cluster.KillAll();
  }
  const int64_t newest = Newest(cluster.folder());
  const std::string folder = absl::StrCat(cluster.folder(), "/ckpt-", newest);
  cluster.Start("", folder + ",read,shard-1-of-2,*,EIO", absl::Milliseconds(2));
  const std::string restored = absl::StrCat("restored from ", cluster.folder(), "/ckpt-");
  const bool has_restored = cluster.chief().WaitForOutput(restored, kWhole);
  INFO(cluster.Logs());
  REQUIRE(has_restored);
  const std::string log = cluster.chief().Output();
  CHECK_THAT(log,
             Contains(absl::StrCat("skipped ", folder, ": ", folder,
                                   "/shard-1-of-2.safetensors: cannot read: Input/output error")));
  CHECK_THAT(log, !Contains(absl::StrCat(restored, newest, "\n")));
}

TEST_CASE("a ps that cannot read the checkpoint ends the start with the file and the error") {
  SavingCluster cluster(/*every_steps=*/5, kForeverSteps);
  cluster.Start("", "", absl::Milliseconds(2));
  REQUIRE(cluster.chief().WaitForOutput(": checkpoint ", kWhole));
  cluster.KillAll();
  const int64_t newest = Newest(cluster.folder());
  cluster.Start(cluster.folder() + ",read,shard-0-of-2,*,EIO", "", absl::Milliseconds(2));
  const auto code = cluster.chief().Wait(kWhole);
  INFO(cluster.Logs());
  CHECK(code == 74);
  CHECK_THAT(cluster.chief().Output(),
             Contains(absl::StrCat(cluster.folder(), "/ckpt-", newest,
                                   "/shard-0-of-2.safetensors: cannot read: Input/output error")));
  CHECK(Newest(cluster.folder()) == newest);
}

// Kills a task at the nth file operation since its start, then all others, and checks what is left.
void KillAtOperation(SavingCluster* cluster, Task task, int nth, const char* action) {
  const std::string faults = absl::StrCat(cluster->folder(), ",any,,", nth, ",", action);
  cluster->Start(task == Task::kPs ? faults : "", task == Task::kChief ? faults : "",
                 absl::Milliseconds(1));
  const auto code = cluster->of(task).Wait(kWhole);
  cluster->KillAll();
  INFO(nth << " " << action << "\n" << cluster->Logs());
  REQUIRE(code == 128 + SIGKILL);
  CHECK(Newest(cluster->folder()) >= cluster->Acknowledged());
}

void KillAtOperations(const std::vector<int>& of_ps, const std::vector<int>& of_chief) {
  SavingCluster cluster(/*every_steps=*/1, kForeverSteps);
  cluster.Start("", "", absl::Milliseconds(1));
  REQUIRE(cluster.chief().WaitForOutput(": checkpoint ", kWhole));
  cluster.KillAll();
  int64_t newest = Newest(cluster.folder());
  const auto kill = [&](Task task, int nth, const char* action) {
    KillAtOperation(&cluster, task, nth, action);
    const int64_t found = Newest(cluster.folder());
    CHECK(found >= newest);
    newest = found;
  };
  for (const char* action : {"kill_before", "kill_after"}) {
    for (const int nth : of_ps) kill(Task::kPs, nth, action);
    for (const int nth : of_chief) kill(Task::kChief, nth, action);
  }
  WARN(2 * (of_ps.size() + of_chief.size())
       << " kills, the newest checkpoint is of step " << newest);
}

std::vector<int> UpTo(int last) {
  std::vector<int> numbers(last);
  std::iota(numbers.begin(), numbers.end(), 1);
  return numbers;
}

void KillAtRandom(int kills) {
  SavingCluster cluster(/*every_steps=*/1, kForeverSteps);
  std::minstd_rand random(1);
  int64_t newest = -1, first = -1;
  for (int i = 0; i < kills; ++i) {
    cluster.Start("", "", absl::ZeroDuration());
    const bool has_saved = cluster.chief().WaitForOutput(": checkpoint ", kWhole);
    INFO(i << "\n" << cluster.Logs());
    REQUIRE(has_saved);
    if (newest >= 0) {
      CHECK_THAT(cluster.chief().Output(), Contains(absl::StrCat("restored from ", cluster.folder(),
                                                                 "/ckpt-", newest, "\n")));
    }
    // It does not end by itself.
    cluster.chief().Wait(kLongestLife * (static_cast<double>(random()) / random.max()));
    cluster.KillAll();
    const int64_t acknowledged = cluster.Acknowledged();
    const int64_t found = Newest(cluster.folder());
    CAPTURE(acknowledged, found);
    REQUIRE(found >= acknowledged);
    REQUIRE(acknowledged > newest);
    if (first < 0) first = found;
    newest = found;
  }
  WARN(kills << " kills, checkpoints of the steps from " << first << " to " << newest);
}

TEST_CASE("a worker whose disk does not answer ends all the same when it is told to") {
  const Cluster cluster(1, 1);
  const std::string job = cluster.WriteJob({});
  Process ps(cluster.Ps(0));
  Process chief(cluster.Chief(job));
  Process worker(cluster.Worker(0),
                 Environment(Binary("deploy/data/digits") + ",open,train-images,1,hang"));
  REQUIRE(worker.WaitForOutput("joined job", kWhole));
  worker.Signal(SIGTERM);
  CHECK(worker.Wait(absl::Seconds(10)) == 143);
  CHECK_THAT(worker.Output(), Contains("a disk or a device does not answer"));
}

TEST_CASE("a ps or a chief that is killed in a save leaves what the chief has told of") {
  KillAtOperations({30, 45}, {70, 120});
}

TEST_CASE("every process killed at once while a job saves: the next start finds the newest") {
  KillAtRandom(4);
}

TEST_CASE("a ps or a chief that is killed at any operation of its start and first saves",
          "[.kills]") {
  KillAtOperations(UpTo(60), UpTo(200));
}

TEST_CASE("500 times every process killed at once while a job saves", "[.kills]") {
  KillAtRandom(500);
}

}  // namespace
}  // namespace lockstep::test
