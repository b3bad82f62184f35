// TaskConfig names the task and the cluster of this process.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/config/cluster_spec.h"

namespace lockstep {

struct TaskConfig {
  Role role = Role::kWorker;
  int index = 0;
  ClusterSpec cluster;
  std::string source;  // the file's path, or "TF_CONFIG": for messages

  // The address that this task serves on.
  const std::string& address() const { return cluster.AddressOf(role, index); }
};

// The value of the environment variable TF_CONFIG, if it is set.
std::optional<std::string> TfConfigFromEnvironment();

// `cluster_path` (--cluster) wins over `tf_config`; without either: an error with exit code 64.
// `task_index` (--task_index) wins over the task of `tf_config`, whose type must be `role`; the
// only chief of a cluster needs neither. INVALID_ARGUMENT for an index outside the spec, and as the
// readers in cluster_reader.h say.
absl::StatusOr<TaskConfig> LoadTask(
    Role role, const std::string& cluster_path, std::optional<int64_t> task_index,
    const std::optional<std::string>& tf_config = TfConfigFromEnvironment());

}  // namespace lockstep
