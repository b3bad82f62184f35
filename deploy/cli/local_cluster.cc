#include "deploy/cli/local_cluster.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/fs/path.h"
#include "deploy/cli/job_certificates.h"

namespace lockstep::deploy {
namespace {

constexpr char kResumeFlag[] = "--resume";
constexpr char kStandbyFlag[] = "--standby";

// As its files are called.
std::string FileName(Role role, int index) {
  if (role == Role::kChief && index == 0) return "chief";
  return absl::StrCat(Name(role), "-", index);
}

Task MakeTask(const ClusterSpec& cluster, Role role, int index, const LocalPlan& plan) {
  const std::string name(Name(role));
  Task task{.role = role, .index = index};
  task.command.name = TaskName(role, index);
  task.command.log_path =
      JoinPath(plan.run_dir, absl::StrCat("logs/", FileName(role, index), ".log"));
  task.command.arguments = {JoinPath(plan.bin_dir, absl::StrCat(name, "/", name)),
                            "--cluster=" + plan.cluster_path};
  // All chiefs have one certificate.
  const std::string holder = role == Role::kChief ? name : FileName(role, index);
  for (std::string& flag : ShownBy(holder, plan)) {
    task.command.arguments.push_back(std::move(flag));
  }
  if (role != Role::kChief || cluster.Count(role) > 1) {
    task.command.arguments.push_back(absl::StrCat("--task_index=", index));
  }
  if (!plan.log_level.empty()) task.command.arguments.push_back("--log_level=" + plan.log_level);
  return task;
}

// The flag with the worker's own value, where it has one.
void AddForWorker(const char* flag, const std::vector<std::string>& values, int worker,
                  Command* command) {
  if (static_cast<size_t>(worker) < values.size()) {
    command->arguments.push_back(flag + values[worker]);
  }
}

// A chief goes on where the one before it was, or stands by for the one that has its place.
Command SuccessorOf(const ClusterSpec& cluster, const Task& task, const std::string& start_flag) {
  Command successor = task.command;
  successor.continues_log = true;
  if (task.role != Role::kChief || successor.arguments.back() == kStandbyFlag) return successor;
  if (!start_flag.empty()) successor.arguments.pop_back();
  successor.arguments.push_back(cluster.Count(Role::kChief) > 1 ? kStandbyFlag : kResumeFlag);
  return successor;
}

Task MakeChief(const ClusterSpec& cluster, int index, const LocalPlan& plan) {
  Task chief = MakeTask(cluster, Role::kChief, index, plan);
  chief.command.arguments.push_back("--job=" + plan.job_path);
  chief.command.arguments.push_back("--summary=" + plan.summary_path);
  if (index > 0) {
    chief.command.arguments.push_back(kStandbyFlag);
  } else if (!plan.start_flag.empty()) {
    chief.command.arguments.push_back(plan.start_flag);
    chief.repeats_start = plan.start_flag != kResumeFlag;
  }
  return chief;
}

}  // namespace

std::string TaskName(Role role, int index) {
  if (role == Role::kChief && index == 0) return "chief";
  return absl::StrCat(Name(role), " ", index);
}

std::vector<Task> PlanTasks(const ClusterSpec& cluster, const LocalPlan& plan) {
  std::vector<Task> tasks;
  for (int i = 0; i < cluster.Count(Role::kChief); ++i) {
    tasks.push_back(MakeChief(cluster, i, plan));
  }
  for (int i = 0; i < cluster.Count(Role::kPs); ++i) {
    tasks.push_back(MakeTask(cluster, Role::kPs, i, plan));
  }
  const int workers = cluster.Count(Role::kWorker);
  for (int i = 0; i < workers; ++i) {
    Task worker = MakeTask(cluster, Role::kWorker, i, plan);
    worker.command.arguments.push_back(
        absl::StrCat("--threads=", std::max(1, plan.cores / workers)));
    if (const size_t devices = plan.worker_devices.size(); devices > 0) {
      worker.command.arguments.push_back("--device=" +
                                         plan.worker_devices[static_cast<size_t>(i) % devices]);
    }
    if (!plan.gpu_memory_limit.empty()) {
      worker.command.arguments.push_back("--gpu_memory_limit=" + plan.gpu_memory_limit);
    }
    if (plan.autotune) worker.command.arguments.push_back("--autotune");
    AddForWorker("--sleep=", plan.worker_sleeps, i, &worker.command);
    AddForWorker("--stall=", plan.worker_stalls, i, &worker.command);
    if (!plan.timeline_dir.empty()) {
      const std::string file = JoinPath(plan.timeline_dir, absl::StrCat("worker-", i, ".csv"));
      worker.command.arguments.push_back("--timeline=" + file);
    }
    tasks.push_back(std::move(worker));
  }
  for (Task& task : tasks) task.successor = SuccessorOf(cluster, task, plan.start_flag);
  return tasks;
}

std::vector<std::string> ShownBy(const std::string& task, const LocalPlan& plan) {
  std::vector<std::string> flags;
  if (!plan.token_path.empty()) flags.push_back("--token_file=" + plan.token_path);
  if (!plan.tls_folder.empty()) {
    flags.push_back("--tls_ca=" + AuthorityPath(plan.tls_folder));
    flags.push_back("--tls_cert=" + CertificatePath(plan.tls_folder, task));
  }
  return flags;
}

std::string ClusterJsonText(const ClusterSpec& cluster) {
  const nlohmann::ordered_json json = {
      {"chief", cluster.chiefs()}, {"ps", cluster.ps}, {"worker", cluster.workers}};
  return json.dump(2) + "\n";
}

}  // namespace lockstep::deploy
