// Reads a cluster spec from a file, or from TF_CONFIG, which TensorFlow's launchers set.
#pragma once

#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "common/config/cluster_spec.h"

namespace lockstep {

// Reads JSON (when the first character is '{') or the text proto lockstep.ClusterDef. The errors
// begin with the path; NOT_FOUND for a missing file, INVALID_ARGUMENT for the rest.
absl::StatusOr<ClusterSpec> ReadClusterFile(const std::string& path);

struct TfConfig {
  struct Task {
    Role role = Role::kWorker;
    int64_t index = 0;
  };
  ClusterSpec cluster;
  std::optional<Task> task;
};

// Parses the text of the environment variable TF_CONFIG. The errors begin with "TF_CONFIG: ".
absl::StatusOr<TfConfig> ReadTfConfig(const std::string& text);

}  // namespace lockstep
