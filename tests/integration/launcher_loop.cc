// A launcher: starts ps, workers and chief of one job with fixed command lines, and each of them
// again when it ends with another code than 0, while a random process is killed (SIGKILL) or told
// to end (SIGTERM) at every --pause. The job has to finish by itself:
//   - no process ever ends with a code that says that a restart does not help;
//   - a chief that restores takes the newest checkpoint;
//   - the losses from its last start on, and the last checkpoint, are those of a run that nobody
//     disturbed, to the bit: replicas_to_aggregate is the number of workers.
// Ends with 0, or 1 and what went wrong.
#include <signal.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>
#include <string>
#include <system_error>
#include <vector>

#include "absl/flags/flag.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/checkpoint/checkpoint.h"
#include "common/config/flags.h"
#include "tests/integration/cluster.h"

ABSL_FLAG(int, faults, 20, "how many processes are killed or told to end");
ABSL_FLAG(absl::Duration, pause, absl::Seconds(5), "between two of them");
ABSL_FLAG(absl::Duration, limit, absl::Minutes(20), "for the job to finish");
ABSL_FLAG(int, seed, 1, "of the choice of processes");

namespace lockstep::test {
namespace {

constexpr int kPs = 2;
constexpr int kWorkers = 2;
constexpr absl::Duration kPoll = absl::Milliseconds(20);
// Each worker waits so long in each step: the job lasts until the last fault.
constexpr absl::Duration kStep = absl::Milliseconds(20);
constexpr absl::Duration kUndisturbed = absl::Minutes(5);
constexpr int kFirstRetriable = 128;
constexpr int kEveryStep = 25;
constexpr char kUsage[] = "launcher_loop [--faults=N] [--pause=DURATION]";

JobText Job(int max_steps, const std::string& folder) {
  return {.max_steps = max_steps,
          .checkpoint = absl::StrCat("folder: '", folder, "' every_steps: ", kEveryStep),
          .evaluation = "not_at_end: true",
          .more = "seed: 5"};
}

// The number behind the last `mark` in `log`; -1: it is not there.
int64_t LastNumber(const std::string& log, const std::string& mark) {
  const size_t at = log.rfind(mark);
  if (at == std::string::npos) return -1;
  const size_t begin = at + mark.size();
  int64_t number = -1;
  (void)absl::SimpleAtoi(log.substr(begin, log.find_first_not_of("0123456789", begin) - begin),
                         &number);
  return number;
}

struct Task {
  std::string name;
  std::vector<std::string> command;
  std::unique_ptr<Process> process;  // null once it has ended with 0
  int starts = 0;
};

class Launcher {
 public:
  // `checkpoints`: the job's folder.
  Launcher(std::vector<Task> tasks, std::string checkpoints)
      : tasks_(std::move(tasks)), checkpoints_(std::move(checkpoints)) {
    for (Task& task : tasks_) StartTask(&task);
  }

  // Starts again what has ended. False: nothing is left, or a process says that it is of no use.
  bool Tend() {
    bool is_left = false;
    for (Task& task : tasks_) {
      if (task.process == nullptr) continue;
      is_left = true;
      const auto code = task.process->Wait(absl::ZeroDuration());
      if (!code.has_value()) continue;
      Note(task, *code);
      if (*code == 0) {
        task.process.reset();
      } else if (*code < kFirstRetriable) {
        return false;
      } else {
        StartTask(&task);
      }
    }
    return is_left && failure_.empty();
  }

  // False: there is none that runs.
  bool Disturb(std::minstd_rand* random) {
    std::vector<Task*> running;
    for (Task& task : tasks_) {
      if (task.process != nullptr && task.process->running()) running.push_back(&task);
    }
    if (running.empty()) return false;
    Task* const victim = running[(*random)() % running.size()];
    const int signal = (*random)() % 2 == 0 ? SIGKILL : SIGTERM;
    absl::PrintF("%s %s\n", signal == SIGKILL ? "killing" : "ending", victim->name);
    victim->process->Signal(signal);
    return true;
  }

  bool all_done() const {
    return std::ranges::all_of(tasks_, [](const Task& task) { return task.process == nullptr; });
  }
  const std::string& failure() const { return failure_; }
  std::string Logs() const {
    std::string logs;
    for (const Task& task : tasks_) {
      if (task.process != nullptr) absl::StrAppend(&logs, task.name, ":\n", task.process->Output());
    }
    return logs;
  }

 private:
  void StartTask(Task* task) {
    ++task->starts;
    task->process = std::make_unique<Process>(task->command);
  }

  void Note(const Task& task, int code) {
    const std::string log = task.process->Output();
    const std::string last = log.substr(log.rfind('\n', log.size() - 2) + 1);
    absl::PrintF("%s ended with %d after start %d: %s", task.name, code, task.starts,
                 last.empty() ? "\n" : last);
    if (code != 0 && code < kFirstRetriable) {
      failure_ = absl::StrCat(task.name, " ended with ", code, ":\n", log);
    }
    if (task.name != "chief") return;
    const int64_t restored = LastNumber(log, "restored from " + checkpoints_ + "/ckpt-");
    if (restored >= 0 && restored < newest_) {
      failure_ = absl::StrCat("the chief restored step ", restored,
                              ", the newest checkpoint is of ", newest_);
    }
    newest_ = std::max(newest_, LastNumber(log, ": checkpoint " + checkpoints_ + "/ckpt-"));
  }

  std::vector<Task> tasks_;
  const std::string checkpoints_;
  std::string failure_;
  int64_t newest_ = -1;  // that a chief has told of
};

std::vector<Task> TasksOf(const Cluster& cluster, const JobText& job, bool is_slow) {
  std::vector<Task> tasks;
  for (int i = 0; i < kPs; ++i) tasks.push_back({absl::StrCat("ps ", i), cluster.Ps(i)});
  for (int i = 0; i < kWorkers; ++i) {
    tasks.push_back({absl::StrCat("worker ", i), cluster.Worker(i)});
    if (is_slow)
      tasks.back().command.push_back(absl::StrCat("--sleep=", absl::FormatDuration(kStep)));
  }
  tasks.push_back({"chief", cluster.Chief(cluster.WriteJob(job))});
  for (const char* flag : {"--resume", "--record_losses", "--lease=2"}) {
    tasks.back().command.push_back(flag);
  }
  return tasks;
}

// Type, shape and checksum of each tensor.
std::map<std::string, std::string> Contents(const std::string& checkpoint) {
  std::map<std::string, std::string> contents;
  const auto manifest = ReadManifest(checkpoint);
  if (!manifest.ok()) return {{"error", manifest.status().ToString()}};
  for (const ShardFile& shard : manifest->shards) {
    for (const TensorRecord& tensor : shard.tensors) {
      contents[tensor.name] = absl::StrCat(tensor.shape.ToString(), " ", tensor.crc32c);
    }
  }
  return contents;
}

struct Result {
  std::vector<double> losses;
  std::map<std::string, std::string> model;
};

Result ResultOf(const Cluster& cluster, const std::string& checkpoints) {
  Result result{.model = Contents(ResolveCheckpoint(checkpoints).value_or("none"))};
  const auto summary = nlohmann::json::parse(cluster.Summary(), nullptr, false);
  if (summary.contains("losses")) result.losses = summary["losses"].get<std::vector<double>>();
  return result;
}

// `bazel test` says where the programs are, `bazel run` does not.
void FindPrograms() {
  std::error_code error;
  const std::string self = std::filesystem::read_symlink("/proc/self/exe", error).string();
  setenv("TEST_SRCDIR", absl::StrCat(self, ".runfiles").c_str(), /*overwrite=*/0);
  setenv("TEST_WORKSPACE", "lockstep", /*overwrite=*/0);
}

int Fail(const std::string& why) {
  absl::PrintF("FAILED: %s\n", why);
  return 1;
}

int Main() {
  FindPrograms();
  const int faults = absl::GetFlag(FLAGS_faults);
  const absl::Duration pause = absl::GetFlag(FLAGS_pause);
  const int max_steps = static_cast<int>(faults * (pause / kStep)) + 100;

  Cluster calm(kPs, kWorkers);
  const std::string calm_folder = calm.folder().Path("checkpoints");
  Launcher undisturbed(TasksOf(calm, Job(max_steps, calm_folder), false), calm_folder);
  for (const absl::Time end = absl::Now() + kUndisturbed; undisturbed.Tend();) {
    if (absl::Now() > end) return Fail("the undisturbed run takes too long\n" + undisturbed.Logs());
    absl::SleepFor(kPoll);
  }
  if (!undisturbed.all_done()) return Fail(undisturbed.failure());
  const Result expected = ResultOf(calm, calm_folder);

  Cluster cluster(kPs, kWorkers);
  const std::string folder = cluster.folder().Path("checkpoints");
  Launcher launcher(TasksOf(cluster, Job(max_steps, folder), true), folder);
  std::minstd_rand random(absl::GetFlag(FLAGS_seed));
  const absl::Time begun = absl::Now();
  absl::Time next = begun + pause;
  int made = 0;
  while (launcher.Tend()) {
    const absl::Time now = absl::Now();
    if (now - begun > absl::GetFlag(FLAGS_limit)) {
      return Fail("the job does not finish\n" + launcher.Logs());
    }
    if (made < faults && now >= next) {
      next = now + pause;
      if (launcher.Disturb(&random)) ++made;
    }
    absl::SleepFor(kPoll);
  }
  if (!launcher.all_done()) return Fail(launcher.failure());
  if (made < faults) return Fail(absl::StrCat("the job was over after ", made, " faults"));
  const Result got = ResultOf(cluster, folder);
  const size_t steps = got.losses.size();
  if (steps == 0 || steps > expected.losses.size()) {
    return Fail(absl::StrCat("the last chief has recorded ", steps, " losses"));
  }
  if (!std::equal(got.losses.begin(), got.losses.end(), expected.losses.end() - steps)) {
    return Fail("the losses are not those of the undisturbed run");
  }
  if (got.model != expected.model) return Fail("the model is not that of the undisturbed run");
  absl::PrintF("finished %d steps in %s with %d faults; the model is that of the undisturbed run\n",
               max_steps, absl::FormatDuration(absl::Now() - begun), made);
  return 0;
}

}  // namespace
}  // namespace lockstep::test

int main(int argc, char** argv) {
  if (const auto flags = lockstep::HandleFlags("launcher_loop", lockstep::test::kUsage, argc, argv);
      flags.exit) {
    return static_cast<int>(flags.code);
  }
  return lockstep::test::Main();
}
