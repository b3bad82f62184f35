#include "common/daemon/running_cluster.h"

#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/config/cluster_change.h"
#include "common/config/cluster_reader.h"
#include "common/log/log.h"

namespace lockstep {
namespace {

void LogRefusal(absl::string_view source, const absl::Status& why) {
  log::Error(absl::StrCat("the changed cluster spec of ", source, " is not used, the one before ",
                          "stays: ", why.message()));
}

}  // namespace

RunningCluster::RunningCluster(TaskConfig task, bool listens_elsewhere)
    : task_(std::move(task)),
      listens_elsewhere_(listens_elsewhere),
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
  absl::StatusOr<ClusterSpec> after = ReadClusterFile(task_.source);
  const ClusterSpec before = spec();
  absl::Status status = after.status();
  if (status.ok()) {
    status = CheckClusterChange(before, *after,
                                {.role = task_.role,
                                 .index = task_.index,
                                 .listens_elsewhere = listens_elsewhere_,
                                 .workers_may_change = workers_may_change});
  }
  if (!status.ok()) {
    LogRefusal(task_.source, status);
    return std::nullopt;
  }
  auto changed = Set(before, *std::move(after));
  if (!changed.has_value()) {
    log::Info(absl::StrCat("the cluster spec of ", task_.source, " was read again: no change"));
  }
  return changed;
}

std::optional<ClusterSpec> RunningCluster::Adopt(ClusterSpec told) {
  const ClusterSpec before = spec();
  if (told.workers.size() != before.workers.size()) told.workers = before.workers;
  absl::Status status = ValidateCluster(&told);
  if (status.ok()) {
    status = CheckClusterChange(
        before, told, {.role = task_.role, .index = task_.index, .listens_elsewhere = true});
  }
  if (status.ok()) return Set(before, std::move(told));
  LogRefusal("the chief", status);
  return std::nullopt;
}

std::optional<ClusterSpec> RunningCluster::Set(const ClusterSpec& before, ClusterSpec after) {
  const std::vector<std::string> changes = DescribeClusterChange(before, after);
  if (changes.empty()) return std::nullopt;
  for (const std::string& change : changes) log::Info(absl::StrCat("cluster spec: ", change));
  known_->Add(after.Canonical());
  absl::MutexLock lock(&mutex_);
  spec_ = after;
  return after;
}

}  // namespace lockstep
