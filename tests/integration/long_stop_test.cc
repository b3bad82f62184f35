// Processes that stand still for longer than a lease, and longer than any connection to them lives:
// they continue as the same processes, and no bit of the model changes.
#include <dirent.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <catch2/catch.hpp>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/string_view.h"
#include "absl/strings/strip.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

using Catch::Matchers::Contains;

constexpr absl::Duration kWhole = absl::Seconds(60);
// Keepalive closes a silent connection after 15 s (common/rpc/limits.h).
constexpr absl::Duration kStop = absl::Seconds(20);
constexpr absl::Duration kResumeAllowed = absl::Seconds(3);
constexpr absl::Duration kAnswer = absl::Seconds(10);  // of a process that runs
constexpr absl::Duration kNextLook = absl::Milliseconds(20);
constexpr int kSteps = 500;
constexpr int kForeverSteps = 1'000'000;
constexpr int kFirstSteps = 50;
constexpr int kMoreSteps = 10;  // of a job that has resumed
// The job outlasts what its test does to it.
constexpr absl::Duration kSlowStep = absl::Milliseconds(10);
const std::vector<std::string> kFlags = {"--lease=2", "--record_losses"};

// The inodes of the TCP sockets of this network namespace that are connected.
std::set<std::string> ConnectedSockets() {
  constexpr char kEstablished[] = "01";
  std::set<std::string> inodes;
  for (const char* const table : {"/proc/net/tcp", "/proc/net/tcp6"}) {
    std::ifstream file(table);
    std::string line;
    std::getline(file, line);  // names of the columns
    while (std::getline(file, line)) {
      std::istringstream words(line);
      std::string number, local, remote, state, queues, timer, retransmits, user, timeout, inode;
      words >> number >> local >> remote >> state >> queues >> timer >> retransmits >> user >>
          timeout >> inode;
      if (state == kEstablished) inodes.insert(inode);
    }
  }
  return inodes;
}

// Those of `process` among them.
std::set<std::string> ConnectionsOf(const Process& process) {
  const std::set<std::string> connected = ConnectedSockets();
  const std::string folder = absl::StrCat("/proc/", process.pid(), "/fd");
  std::set<std::string> own;
  const std::unique_ptr<DIR, int (*)(DIR*)> files(opendir(folder.c_str()), closedir);
  REQUIRE(files != nullptr);
  while (const dirent* const file = readdir(files.get())) {
    char target[64] = {};
    const std::string link = absl::StrCat(folder, "/", file->d_name);
    if (readlink(link.c_str(), target, sizeof target - 1) < 0) continue;
    absl::string_view name(target);
    if (!absl::ConsumePrefix(&name, "socket:[") || !absl::ConsumeSuffix(&name, "]")) continue;
    if (connected.contains(std::string(name))) own.insert(std::string(name));
  }
  return own;
}

JobText Job(const Cluster& cluster, int max_steps, const std::string& sync) {
  return {.max_steps = max_steps,
          .optimizer = "adam {} learning_rate { base: 0.001 }",
          .sync = sync,
          .checkpoint = absl::StrCat("folder: '", cluster.folder().Path("checkpoints"), "'")};
}

struct Result {
  explicit Result(Cluster& cluster)
      : losses(Losses(Finish(cluster))),
        tensors(TensorsOf(cluster.folder().Path(absl::StrCat("checkpoints/ckpt-", kSteps)))) {}

  std::vector<double> losses;
  std::map<std::string, std::string> tensors;
};

// Of a run that nothing disturbs.
Result UndisturbedRun() {
  Cluster cluster(1, 2);
  cluster.StartAll(Job(cluster, kSteps, ""), kFlags);
  return Result(cluster);
}

enum class Stopped { kPs, kChief, kWorker, kAll };

// A job of one ps, of whose processes some stand still.
class StoppedJob {
 public:
  StoppedJob(std::string name, Stopped stopped, int workers = 2, int max_steps = kSteps,
             const std::string& sync = "")
      : name_(std::move(name)), what_(stopped), cluster_(1, workers) {
    cluster_.SlowDown(kSlowStep);
    cluster_.StartAll(Job(cluster_, max_steps, sync), kFlags);
    if (!cluster_.WaitForStep(kFirstSteps, kWhole)) FAIL(cluster_.Logs());
    if (Stops(Stopped::kPs)) stopped_.push_back(&cluster_.ps(0));
    if (Stops(Stopped::kChief)) stopped_.push_back(&cluster_.chief());
    if (Stops(Stopped::kWorker)) stopped_.push_back(&cluster_.worker(1));
    if (what_ == Stopped::kAll) stopped_.push_back(&cluster_.worker(0));
    for (const Process* process : stopped_) connections_.push_back(ConnectionsOf(*process));
    for (const Process* process : stopped_) process->Signal(SIGSTOP);
    stopped_at_ = absl::Now();
  }

  const std::string& name() const { return name_; }
  Stopped what() const { return what_; }
  Cluster& cluster() { return cluster_; }

  // Steps that the ps has closed or, while it stands still, of which the chief knows; -1: neither
  // answers.
  int64_t Step() const {
    const int64_t closed = ClosedSteps();
    if (closed >= 0) return closed;
    const auto status = FetchStatus(cluster_.spec().chief, kAnswer);
    return status.ok() ? status->global_step() : -1;
  }

  // Returns when the stop has lasted for kStop.
  void WaitUntilStopEnds() { stopped_[0]->Wait(stopped_at_ + kStop - absl::Now()); }

  // That each connection that the processes had before the stop has been closed by the other end.
  void CheckConnectionsAreClosed() const {
    const std::set<std::string> connected = ConnectedSockets();
    for (const std::set<std::string>& before : connections_) {
      CHECK_FALSE(before.empty());
      CHECK(std::ranges::none_of(
          before, [&](const std::string& inode) { return connected.contains(inode); }));
    }
  }

  // Continues the processes. Returns how long it takes until steps close again and a worker that
  // was stopped alone has registered again; infinite if it is not within kWhole.
  absl::Duration Continue() {
    const size_t read_to = cluster_.worker(1).Output().size();
    const auto has_joined = [&] {
      return what_ != Stopped::kWorker ||
             absl::StrContains(cluster_.worker(1).OutputFrom(read_to), "joined job");
    };
    const absl::Time begin = absl::Now();
    for (const Process* process : stopped_) process->Signal(SIGCONT);
    int64_t first = -1;
    int64_t step = -1;
    while (first < 0 || step < first + kMoreSteps || !has_joined()) {
      const bool has_ended = cluster_.chief().Wait(kNextLook).has_value();
      if (has_ended || absl::Now() - begin > kWhole) return absl::InfiniteDuration();
      step = ClosedSteps();
      if (first < 0) first = step;
    }
    return absl::Now() - begin;
  }

 private:
  bool Stops(Stopped stopped) const { return what_ == stopped || what_ == Stopped::kAll; }
  int64_t ClosedSteps() const {
    const auto status = FetchStatus(cluster_.spec().ps[0], absl::Seconds(1));
    return status.ok() ? status->shard().shard_step() : -1;
  }

  const std::string name_;
  const Stopped what_;
  Cluster cluster_;
  std::vector<Process*> stopped_;
  std::vector<std::set<std::string>> connections_;  // of each
  absl::Time stopped_at_;
};

void CheckResumes(StoppedJob& job) {
  CAPTURE(job.name());
  job.WaitUntilStopEnds();
  // Nobody closes connections between processes that all stand still.
  if (job.what() != Stopped::kAll) job.CheckConnectionsAreClosed();
  const absl::Duration taken = job.Continue();
  INFO(job.cluster().Logs());
  CHECK(taken < kResumeAllowed);
  if (job.what() == Stopped::kWorker) {
    // The lease, and up to a second more before a chief at a loaded machine looks.
    CHECK_THAT(job.cluster().chief().Output(),
               Contains("is lost: silent for 2.") || Contains("is lost: silent for 3."));
  }
  std::cout << absl::StrFormat("%s: steps %.2f s after SIGCONT\n", job.name(),
                               absl::ToDoubleSeconds(taken));
}

TEST_CASE("what is stopped for 20 s continues as the same processes, and no bit changes") {
  std::vector<std::unique_ptr<StoppedJob>> jobs;
  const auto start = [&jobs](const std::string& name, Stopped stopped) {
    jobs.push_back(std::make_unique<StoppedJob>(name, stopped));
  };
  start("a ps without a copy", Stopped::kPs);
  start("the chief without a standby", Stopped::kChief);
  start("a worker that is needed", Stopped::kWorker);
  start("all processes", Stopped::kAll);
  StoppedJob with_backup("a worker of three of which two are needed", Stopped::kWorker, 3,
                         kForeverSteps, "replicas_to_aggregate: 2");
  const int64_t backup_step = with_backup.Step();

  // The jobs stand still meanwhile.
  std::vector<int64_t> steps;
  for (const auto& job : jobs) steps.push_back(job->Step());
  const Result calm = UndisturbedRun();
  REQUIRE(calm.losses.size() == kSteps);
  for (size_t i = 0; i < jobs.size(); ++i) {
    CAPTURE(jobs[i]->name());
    // Where all processes stand still nobody tells; that they do makes no step.
    if (jobs[i]->what() == Stopped::kAll) continue;
    REQUIRE(steps[i] > 0);
    CHECK(jobs[i]->Step() == steps[i]);
  }
  CHECK(with_backup.cluster().WaitForStep(backup_step + 100, kWhole));

  for (const auto& job : jobs) CheckResumes(*job);
  CheckResumes(with_backup);
  for (const auto& job : jobs) {
    CAPTURE(job->name());
    // Fails unless each process that was started at first ends with 0.
    const Result result(job->cluster());
    CHECK(result.losses == calm.losses);
    CHECK(result.tensors == calm.tensors);
  }
}

}  // namespace
}  // namespace lockstep::test
