// The JSON of a cluster spec and of TF_CONFIG, as it is written: addresses are not looked at yet.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/config/cluster_spec.h"

namespace lockstep {

struct ClusterJson {
  struct Task {
    std::string type;  // as written: "worker", "master", "evaluator"
    int64_t index = 0;
  };
  ClusterSpec cluster;
  std::optional<Task> task;
};

// Two forms: an object of jobs, {"ps": [...], "worker": [...], "chief": ...}, or TensorFlow's,
// where that object stands under "cluster" and other keys are TensorFlow's own. A job is a list, a
// map with the keys "0", "1", ..., or for one task a string. "master" is another name for chief
// (both: an error); "evaluator" is left out. INVALID_ARGUMENT, with line and column for what is no
// JSON and the path of the entry for what has the wrong form.
absl::StatusOr<ClusterJson> ParseClusterJson(absl::string_view text);

}  // namespace lockstep
