#include "common/config/task.h"

#include <cstdlib>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/config/cluster_reader.h"

namespace lockstep {
namespace {

absl::Status CheckIndex(const TaskConfig& task, int64_t index) {
  const int count = task.cluster.Count(task.role);
  if (index >= 0 && index < count) return absl::OkStatus();
  std::string remedy = absl::StrCat("use a task index from 0 to ", count - 1);
  if (task.source == "TF_CONFIG") {
    absl::StrAppend(&remedy, "; in a TFJob leave enableDynamicWorker off, it hides other tasks");
  }
  return absl::InvalidArgumentError(
      absl::StrCat(task.source, ": there is no ", Name(task.role), " ", index, ", the cluster has ",
                   count, " ", Name(task.role), count == 1 ? "" : " tasks", ". Remedy: ", remedy));
}

}  // namespace

std::optional<std::string> TfConfigFromEnvironment() {
  const char* text = std::getenv("TF_CONFIG");
  if (text == nullptr) return std::nullopt;
  return text;
}

absl::StatusOr<TaskConfig> LoadTask(Role role, const std::string& cluster_path,
                                    std::optional<int64_t> task_index,
                                    const std::optional<std::string>& tf_config) {
  TaskConfig task{role};
  std::optional<int64_t> index = task_index;
  if (cluster_path.empty() && !tf_config.has_value()) {
    return UsageError("--cluster: no cluster is given. Remedy: --cluster=FILE, or set TF_CONFIG");
  }
  if (!cluster_path.empty()) {
    task.source = cluster_path;
    LOCKSTEP_ASSIGN_OR_RETURN(task.cluster, ReadClusterFile(cluster_path));
  } else {
    task.source = "TF_CONFIG";
    LOCKSTEP_ASSIGN_OR_RETURN(TfConfig config, ReadTfConfig(*tf_config));
    task.cluster = std::move(config.cluster);
    if (config.task.has_value() && config.task->role != role) {
      return absl::InvalidArgumentError(absl::StrCat(
          "TF_CONFIG: task.type is ", Name(config.task->role), " but this program is the ",
          Name(role), ". Remedy: start the ", Name(config.task->role), " binary here"));
    }
    if (!index.has_value() && config.task.has_value()) index = config.task->index;
  }
  if (!index.has_value() && role == Role::kChief && task.cluster.Count(role) == 1) index = 0;
  if (!index.has_value()) {
    return UsageError(absl::StrCat("--task_index: expected the index of this ", Name(role),
                                   ", got none. Remedy: --task_index=0 to ",
                                   task.cluster.Count(role) - 1));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckIndex(task, *index));
  task.index = static_cast<int>(*index);
  return task;
}

}  // namespace lockstep
