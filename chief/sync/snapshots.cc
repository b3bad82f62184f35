#include "chief/sync/snapshots.h"

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/log/log.h"

namespace lockstep::chief {

Snapshots::Snapshots(Command command, std::vector<PsControl*> shards, Executor* executor,
                     const Clock* clock)
    : command_(std::move(command)),
      shards_(std::move(shards)),
      executor_(executor),
      clock_(clock) {}

void Snapshots::Hold(GlobalStep version, int users) {
  if (users == 0) return Send({version, kStepShard});
  users_[version] += users;
}

void Snapshots::Release(GlobalStep version) {
  const auto found = users_.find(version);
  LOCKSTEP_CHECK(found != users_.end());
  if (--found->second > 0) return;
  users_.erase(found);
  Send({version, kStepShard});
}

void Snapshots::NoteEvaluation(EvaluatedVersion evaluation) {
  const GlobalStep version(evaluation.version());
  evaluations_[version] = std::move(evaluation);
}

void Snapshots::ReleaseAtOthers(GlobalStep version) {
  for (size_t shard = kStepShard + 1; shard < shards_.size(); ++shard) Send({version, shard});
}

void Snapshots::Tick() {
  std::vector<Call> due;
  for (const auto& [call, retry] : releases_) {
    if (retry.IsDue(clock_->Monotonic())) due.push_back(call);
  }
  for (const Call& call : due) Send(call);
}

void Snapshots::Send(const Call& call) {
  releases_[call].Sent();
  ReleaseSnapshotRequest request;
  *request.mutable_command() = command_;
  request.set_version(call.first.value());
  const auto evaluated = evaluations_.find(call.first);
  if (call.second == kStepShard && evaluated != evaluations_.end()) {
    *request.mutable_evaluation() = evaluated->second;
  }
  shards_[call.second]->Call(
      kReleaseSnapshot, request,
      On<ReleaseSnapshotReply>(executor_,
                               [this, call](const absl::StatusOr<ReleaseSnapshotReply>& reply) {
                                 OnAnswer(call, reply.status());
                               }));
}

void Snapshots::OnAnswer(const Call& call, const absl::Status& status) {
  const auto found = releases_.find(call);
  if (found == releases_.end()) return;
  if (IsTransient(status)) return found->second.Failed(status, clock_->Monotonic());
  releases_.erase(found);
  if (call.second == kStepShard) {
    evaluations_.erase(call.first);
    ReleaseAtOthers(call.first);
  }
  if (status.ok()) return;
  // It costs memory at that shard, nothing else.
  log::Warning(
      absl::StrCat("version ", call.first.value(), " could not be released: ", status.message()));
}

}  // namespace lockstep::chief
