// The cluster spec of a process that runs: as its file has it, read again on SIGHUP, or as the
// chief tells it. What a change may not change is refused, and the spec before stays.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"
#include "common/config/cluster_change.h"
#include "common/config/known_cluster_specs.h"
#include "common/config/task.h"
#include "common/daemon/daemon_credentials.h"

namespace lockstep {

// Thread-safe.
class RunningCluster {
 public:
  // `listens_elsewhere`: the process does not listen on its address in the spec. `credentials`
  // admit each later spec.
  RunningCluster(TaskConfig task, bool listens_elsewhere, DaemonCredentials credentials = {});

  ClusterSpec spec() const;
  // This one and those before.
  const std::shared_ptr<KnownClusterSpecs>& known() const { return known_; }

  // After SIGHUP: reads the file again, and logs what has changed, or why the spec before stays.
  // The new spec if it is another one. `workers_may_change`: also their number.
  std::optional<ClusterSpec> Reread(bool workers_may_change);
  // The same with what a chief has told. Of a job whose workers come and go it may have other
  // workers; then ours stay.
  std::optional<ClusterSpec> Adopt(ClusterSpec told);

 private:
  using Changes = std::vector<std::string>;  // as DescribeClusterChange

  // Checks the new spec against the one that it replaces, and what the credentials allow. Both
  // `spec_` and `known_` change, or neither: of two threads the later one is the newest in both.
  absl::StatusOr<Changes> Set(const ClusterSpec& after, const ClusterChangeRules& rules)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TaskConfig task_;  // as it was at the start
  const bool listens_elsewhere_;
  const DaemonCredentials credentials_;
  const std::shared_ptr<KnownClusterSpecs> known_;
  mutable absl::Mutex mutex_;
  ClusterSpec spec_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
