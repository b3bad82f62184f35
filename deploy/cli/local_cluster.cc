#include "deploy/cli/local_cluster.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/fs/path.h"
#include "deploy/cli/job_certificates.h"

namespace lockstep::deploy {
namespace {

// As its files are called.
std::string FileName(Role role, int index) {
  if (role == Role::kChief) return "chief";
  return absl::StrCat(Name(role), "-", index);
}

Task MakeTask(Role role, int index, const LocalPlan& plan) {
  const std::string name(Name(role));
  Task task{.role = role, .index = index};
  task.command.name = TaskName(role, index);
  task.command.log_path =
      JoinPath(plan.run_dir, absl::StrCat("logs/", FileName(role, index), ".log"));
  task.command.arguments = {JoinPath(plan.bin_dir, absl::StrCat(name, "/", name)),
                            "--cluster=" + plan.cluster_path};
  for (std::string& flag : ShownBy(FileName(role, index), plan)) {
    task.command.arguments.push_back(std::move(flag));
  }
  if (role != Role::kChief) {
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

// A chief goes on where the one before it was.
Command SuccessorOf(const Task& task, const std::string& start_flag) {
  Command successor = task.command;
  successor.continues_log = true;
  if (task.role != Role::kChief) return successor;
  if (!start_flag.empty()) successor.arguments.pop_back();
  successor.arguments.push_back("--resume");
  return successor;
}

}  // namespace

std::string TaskName(Role role, int index) {
  if (role == Role::kChief) return "chief";
  return absl::StrCat(Name(role), " ", index);
}

std::vector<Task> PlanTasks(const ClusterSpec& cluster, const LocalPlan& plan) {
  std::vector<Task> tasks;
  Task chief = MakeTask(Role::kChief, 0, plan);
  chief.command.arguments.push_back("--job=" + plan.job_path);
  chief.command.arguments.push_back("--summary=" + plan.summary_path);
  if (!plan.start_flag.empty()) chief.command.arguments.push_back(plan.start_flag);
  tasks.push_back(std::move(chief));
  for (int i = 0; i < cluster.Count(Role::kPs); ++i) tasks.push_back(MakeTask(Role::kPs, i, plan));
  const int workers = cluster.Count(Role::kWorker);
  for (int i = 0; i < workers; ++i) {
    Task worker = MakeTask(Role::kWorker, i, plan);
    worker.command.arguments.push_back(
        absl::StrCat("--threads=", std::max(1, plan.cores / workers)));
    AddForWorker("--sleep=", plan.worker_sleeps, i, &worker.command);
    AddForWorker("--stall=", plan.worker_stalls, i, &worker.command);
    if (!plan.timeline_dir.empty()) {
      const std::string file = JoinPath(plan.timeline_dir, absl::StrCat("worker-", i, ".csv"));
      worker.command.arguments.push_back("--timeline=" + file);
    }
    tasks.push_back(std::move(worker));
  }
  for (Task& task : tasks) task.successor = SuccessorOf(task, plan.start_flag);
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
      {"chief", {cluster.chief}}, {"ps", cluster.ps}, {"worker", cluster.workers}};
  return json.dump(2) + "\n";
}

}  // namespace lockstep::deploy
