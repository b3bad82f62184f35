#include "common/daemon/running_cluster.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/status_macros.h"
#include "common/config/cluster_reader.h"
#include "common/log/log.h"

namespace lockstep {
namespace {

// False: they were refused.
bool LogChanges(absl::string_view source, const absl::StatusOr<std::vector<std::string>>& changes) {
  if (!changes.ok()) {
    log::Error(absl::StrCat("the changed cluster spec of ", source, " is not used, the one before ",
                            "stays: ", changes.status().message()));
    return false;
  }
  for (const std::string& change : *changes) log::Info(absl::StrCat("cluster spec: ", change));
  return true;
}

}  // namespace

RunningCluster::RunningCluster(TaskConfig task, bool listens_elsewhere,
                               DaemonCredentials credentials)
    : task_(std::move(task)),
      listens_elsewhere_(listens_elsewhere),
      credentials_(std::move(credentials)),
      known_(std::make_shared<KnownClusterSpecs>(task_.cluster.Canonical())),
      spec_(task_.cluster) {}

ClusterSpec RunningCluster::spec() const {
  absl::MutexLock lock(&mutex_);
  return spec_;
}

std::optional<ClusterSpec> RunningCluster::Reread(bool workers_may_change) {
  if (task_.source == "TF_CONFIG") {
    log::Info("SIGHUP changes nothing: the cluster spec comes from TF_CONFIG");
    return std::nullopt;
  }
  const absl::StatusOr<ClusterSpec> after = ReadClusterFile(task_.source);
  absl::StatusOr<Changes> changes;
  if (!after.ok()) {
    changes = after.status();
  } else {
    absl::MutexLock lock(&mutex_);
    changes = Set(*after, {.role = task_.role,
                           .index = task_.index,
                           .listens_elsewhere = listens_elsewhere_,
                           .workers_may_change = workers_may_change});
  }
  if (!LogChanges(task_.source, changes)) return std::nullopt;
  if (!changes->empty()) return *after;
  log::Info(absl::StrCat("the cluster spec of ", task_.source, " was read again: no change"));
  return std::nullopt;
}

std::optional<ClusterSpec> RunningCluster::Adopt(ClusterSpec told) {
  absl::StatusOr<Changes> changes;
  {
    absl::MutexLock lock(&mutex_);
    if (told.workers.size() != spec_.workers.size()) told.workers = spec_.workers;
    const absl::Status valid = ValidateCluster(&told);
    changes = valid.ok()
                  ? Set(told, {.role = task_.role, .index = task_.index, .listens_elsewhere = true})
                  : valid;
  }
  if (!LogChanges("the chief", changes) || changes->empty()) return std::nullopt;
  return told;
}

absl::StatusOr<RunningCluster::Changes> RunningCluster::Set(const ClusterSpec& after,
                                                            const ClusterChangeRules& rules) {
  LOCKSTEP_RETURN_IF_ERROR(CheckClusterChange(spec_, after, rules));
  Changes changes = DescribeClusterChange(spec_, after);
  if (changes.empty()) return changes;
  LOCKSTEP_RETURN_IF_ERROR(credentials_.Admit(after));
  known_->Add(after.Canonical());
  spec_ = after;
  return changes;
}

}  // namespace lockstep
