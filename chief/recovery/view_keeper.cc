#include "chief/recovery/view_keeper.h"

#include <algorithm>
#include <utility>

#include "common/base/lost_variables.h"
#include "common/replicas_proto/convert.h"

namespace lockstep::chief {
namespace {

// Well below a sensible --orphan_timeout of a ps, which counts the chief's silence.
constexpr absl::Duration kRepeat = absl::Seconds(5);

}  // namespace

ViewKeeper::ViewKeeper(SetViewRequest view, std::vector<PsControl*> shards,
                       std::vector<std::string> shard_names, Executor* executor, const Clock* clock,
                       const Clock* real_clock, std::function<void()> on_confirmed,
                       std::function<void(absl::Status)> on_error)
    : view_(std::move(view)),
      shards_(std::move(shards)),
      shard_names_(std::move(shard_names)),
      executor_(executor),
      clock_(clock),
      real_clock_(real_clock),
      on_confirmed_(std::move(on_confirmed)),
      on_error_(std::move(on_error)),
      states_(shards_.size()),
      views_{{0, {}}} {}

void ViewKeeper::SetReplicaViews(const ReplicaViews& views) {
  newest_replicas_ = views.newest().number;
  *view_.mutable_replica_views() = ToProto(views);
  SetMembers(views_.rbegin()->second.members);
}

void ViewKeeper::SetMembers(std::vector<LiveMember> members) {
  const uint64_t number = views_.rbegin()->first + 1;
  views_[number] = {std::move(members), newest_replicas_};
  for (size_t shard = 0; shard < shards_.size(); ++shard) Send(shard);
}

void ViewKeeper::AnnounceAgain(std::vector<std::string> shard_names) {
  shard_names_ = std::move(shard_names);
  SetMembers(views_.rbegin()->second.members);
}

void ViewKeeper::Tick() {
  for (size_t shard = 0; shard < shards_.size() && !stopped_; ++shard) {
    Shard& state = states_[shard];
    const absl::Duration silence = real_clock_->Monotonic() - state.sent;
    const bool is_silent = state.retry.is_idle() && silence >= kRepeat;
    if (state.retry.IsDue(clock_->Monotonic()) || (is_silent && state.accepted > 0)) Send(shard);
  }
}

bool ViewKeeper::IsConfirmed(const LiveMember& member) const {
  return std::find(confirmed_.begin(), confirmed_.end(), member) != confirmed_.end();
}

void ViewKeeper::Send(size_t shard) {
  if (stopped_ || states_[shard].retry.in_flight()) return;
  states_[shard].retry.Sent();
  states_[shard].sent = real_clock_->Monotonic();
  const auto& [number, announced] = *views_.rbegin();
  SetViewRequest request = view_;
  request.clear_members();
  request.set_number(number);
  request.set_shard(static_cast<uint32_t>(shard));
  for (const LiveMember& member : announced.members) {
    Member* added = request.add_members();
    added->set_worker(member.worker.value());
    added->set_incarnation(member.incarnation.value());
  }
  shards_[shard]->Call(kSetView, request,
                       On<SetViewReply>(executor_, [=, this, number = number](
                                                       const absl::StatusOr<SetViewReply>& reply) {
                         OnAnswer(shard, number, reply);
                       }));
}

void ViewKeeper::OnAnswer(size_t shard, uint64_t view, const absl::StatusOr<SetViewReply>& reply) {
  if (stopped_) return;
  const absl::Status& status = reply.status();
  Shard& state = states_[shard];
  if (!status.ok()) {
    if (!IsTransient(status)) {
      stopped_ = true;
      return on_error_(status);
    }
    const absl::Duration now = clock_->Monotonic();
    state.problem.RecordError(status, now);
    return state.retry.Failed(status, now);
  }
  if (!reply->has_variables()) {
    stopped_ = true;
    return on_error_(LostVariablesError(shard_names_[shard]));
  }
  state.retry.Succeeded();
  state.problem = {};
  state.accepted = view;
  if (shard == kStepShard) {
    open_step_ = GlobalStep(reply->shard_step());
    start_step_ = GlobalStep(reply->start_step());
  }
  if (view < views_.rbegin()->first) Send(shard);

  uint64_t everywhere = view;
  for (const Shard& other : states_) everywhere = std::min(everywhere, other.accepted);
  // A shard that skipped views has accepted a later one; the newest that none is behind counts.
  const auto newest = views_.find(everywhere);
  if (newest == views_.end() || newest == views_.begin()) return;
  confirmed_ = newest->second.members;
  confirmed_replicas_ = newest->second.replicas;
  views_.erase(views_.begin(), newest);
  on_confirmed_();
}

}  // namespace lockstep::chief
