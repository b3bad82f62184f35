#include "chief/sync/step_loop.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/exit_code.h"

namespace lockstep::chief {
namespace {

constexpr size_t kStepShard = 0;
// Grants of this many steps are parked at every shard.
constexpr int64_t kGrantsAhead = 2;

constexpr char kStartAgain[] = "start the cluster again, the chief with --restore";

}  // namespace

StepLoop::StepLoop(StepLoopOptions options, std::vector<PsControl*> shards, Executor* executor,
                   const Clock* clock, std::function<void(const CommittedStep&)> on_commit,
                   std::function<void(absl::Status)> on_end)
    : options_(std::move(options)),
      shards_(std::move(shards)),
      executor_(executor),
      clock_(clock),
      on_commit_(std::move(on_commit)),
      on_end_(std::move(on_end)),
      global_step_(options_.start),
      progress_(shards_.size(), ShardProgress{.step = options_.start}),
      grants_(shards_.size()) {
  LOCKSTEP_CHECK(!shards_.empty() && options_.start < options_.end);
}

void StepLoop::Start() { OpenGrants(); }

void StepLoop::Tick() {
  const absl::Duration now = clock_->Monotonic();
  for (size_t shard = 0; shard < shards_.size() && !ended_; ++shard) {
    const ShardProgress& progress = progress_[shard];
    if (!progress.problem.ok() && now - progress.problem_since >= options_.patience) {
      return End(absl::UnavailableError(absl::StrCat(
          progress.problem.message(), ", for ", absl::ToInt64Seconds(now - progress.problem_since),
          " s. Remedy: ", kStartAgain)));
    }
    // A copy: sending may answer at once and change the grants.
    const std::vector<Grant> grants = grants_[shard];
    for (const Grant& grant : grants) {
      if (grant.retry.IsDue(now)) SendGrant(shard, grant.step);
    }
  }
  if (!ended_ && commit_.IsDue(now)) SendCommit();
}

void StepLoop::OpenGrants() {
  const int64_t end = std::min(options_.end.value(), global_step_.value() + kGrantsAhead);
  for (int64_t step = global_step_.value(); step < end; ++step) {
    if (static_cast<size_t>(step - global_step_.value()) >= losses_.size()) {
      losses_.push_back(std::numeric_limits<float>::quiet_NaN());
    }
    for (size_t shard = 0; shard < shards_.size(); ++shard) {
      if (Find(shard, GlobalStep(step)) != nullptr) continue;
      grants_[shard].push_back({GlobalStep(step)});
      SendGrant(shard, GlobalStep(step));
    }
  }
}

StepLoop::Grant* StepLoop::Find(size_t shard, GlobalStep step) {
  for (Grant& grant : grants_[shard]) {
    if (grant.step == step) return &grant;
  }
  return nullptr;
}

void StepLoop::SendGrant(size_t shard, GlobalStep step) {
  Grant* grant = Find(shard, step);
  if (grant == nullptr || grant->retry.in_flight()) return;
  grant->retry.Sent();
  const Keep keep = options_.keep(step.next());
  GrantRequest request;
  *request.mutable_command() = options_.command;
  request.set_step(step.value());
  request.set_required(options_.required);
  request.set_learning_rate(options_.learning_rate(step));
  request.set_keep_values(keep.values);
  request.set_keep_slots(keep.slots);
  request.set_commit(single_shard());
  request.set_last(single_shard() && step.next() == options_.end);
  shards_[shard]->Grant(request,
                        On<GrantReply>(executor_, [=, this](absl::StatusOr<GrantReply> reply) {
                          OnGrant(shard, step, std::move(reply));
                        }));
}

void StepLoop::OnGrant(size_t shard, GlobalStep step, absl::StatusOr<GrantReply> reply) {
  Grant* grant = Find(shard, step);
  if (ended_ || grant == nullptr || grant->closed) return;
  if (!reply.ok()) {
    // A grant is parked: its deadline says nothing about the shard.
    const bool deadline = absl::IsDeadlineExceeded(reply.status());
    if (deadline) progress_[shard].problem = absl::OkStatus();
    if (deadline || Survives(shard, reply.status())) {
      grant->retry.Failed(reply.status(), clock_->Monotonic());
      if (grant->retry.IsDue(clock_->Monotonic())) SendGrant(shard, step);
    }
    return;
  }
  grant->closed = true;
  grant->retry.Succeeded();
  ShardProgress& progress = progress_[shard];
  progress.problem = absl::OkStatus();
  progress.step = std::max(progress.step, step.next());
  progress.accepted = std::max<uint64_t>(progress.accepted, reply->accepted());
  progress.stale = std::max<uint64_t>(progress.stale, reply->stale());
  if (shard == kStepShard) {
    for (const SmallStatistic& statistic : reply->statistics()) {
      if (statistic.variable() != options_.loss_variable || statistic.values_size() == 0) continue;
      losses_[step.value() - global_step_.value()] = statistic.values(0);
    }
  }
  if (!AllClosed()) return;
  single_shard() ? Advance() : SendCommit();
}

bool StepLoop::AllClosed() const {
  return std::all_of(grants_.begin(), grants_.end(), [&](const std::vector<Grant>& grants) {
    return !grants.empty() && grants.front().closed;
  });
}

void StepLoop::SendCommit() {
  if (commit_.in_flight()) return;
  commit_.Sent();
  const GlobalStep step = global_step_;
  CommitStepRequest request;
  *request.mutable_command() = options_.command;
  request.set_step(step.value());
  request.set_last(step.next() == options_.end);
  shards_[kStepShard]->CommitStep(
      request, On<CommitStepReply>(executor_, [=, this](absl::StatusOr<CommitStepReply> reply) {
        OnCommit(step, std::move(reply));
      }));
}

void StepLoop::OnCommit(GlobalStep step, absl::StatusOr<CommitStepReply> reply) {
  if (ended_ || step != global_step_) return;
  if (!reply.ok()) {
    if (Survives(kStepShard, reply.status())) {
      commit_.Failed(reply.status(), clock_->Monotonic());
    }
    return;
  }
  commit_.Succeeded();
  progress_[kStepShard].problem = absl::OkStatus();
  Advance();
}

void StepLoop::Advance() {
  const CommittedStep committed{.global_step = global_step_.next(), .loss = losses_.front()};
  global_step_ = committed.global_step;
  losses_.erase(losses_.begin());
  for (std::vector<Grant>& grants : grants_) grants.erase(grants.begin());
  // The next grants leave before anybody looks at the step that is over.
  if (global_step_ < options_.end) OpenGrants();
  on_commit_(committed);
  if (ended_) return;
  if (global_step_ == options_.end) return End(absl::OkStatus());
  if (AllClosed()) single_shard() ? Advance() : SendCommit();
}

bool StepLoop::Survives(size_t shard, const absl::Status& error) {
  if (IsTransient(error)) {
    ShardProgress& progress = progress_[shard];
    if (progress.problem.ok()) progress.problem_since = clock_->Monotonic();
    progress.problem = error;
    return true;
  }
  if (absl::IsFailedPrecondition(error)) {
    // A ps that was started anew knows neither the job nor its variables.
    End(WithExitCode(
        absl::FailedPreconditionError(absl::StrCat(error.message(), ". Remedy: ", kStartAgain)),
        ExitCode::kPeersLost));
  } else {
    End(error);
  }
  return false;
}

void StepLoop::End(absl::Status status) {
  if (std::exchange(ended_, true)) return;
  on_end_(std::move(status));
}

}  // namespace lockstep::chief
