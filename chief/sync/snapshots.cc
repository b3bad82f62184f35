#include "chief/sync/snapshots.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/log/log.h"

namespace lockstep::chief {

Snapshots::Snapshots(Command command, std::vector<PsControl*> shards, Executor* executor)
    : command_(std::move(command)), shards_(std::move(shards)), executor_(executor) {}

void Snapshots::Hold(GlobalStep version, int users) {
  if (users == 0) return ReleaseEverywhere(version);
  users_[version] += users;
}

void Snapshots::Release(GlobalStep version) {
  const auto found = users_.find(version);
  LOCKSTEP_CHECK(found != users_.end());
  if (--found->second > 0) return;
  users_.erase(found);
  ReleaseEverywhere(version);
}

void Snapshots::ReleaseEverywhere(GlobalStep version) {
  ReleaseSnapshotRequest request;
  *request.mutable_command() = command_;
  request.set_version(version.value());
  for (PsControl* shard : shards_) {
    shard->ReleaseSnapshot(
        request,
        On<ReleaseSnapshotReply>(
            executor_, [version](const absl::StatusOr<ReleaseSnapshotReply>& reply) {
              if (reply.ok()) return;
              log::Warning(absl::StrCat("version ", version.value(),
                                        " could not be released: ", reply.status().message()));
            }));
  }
}

}  // namespace lockstep::chief
