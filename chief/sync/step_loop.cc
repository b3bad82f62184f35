#include "chief/sync/step_loop.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/exit_code.h"
#include "common/base/grants_ahead.h"
#include "common/base/ids.h"

namespace lockstep::chief {
namespace {

// kGrantsAhead of an asynchronous job, whose steps do not wait for the chief.
constexpr int64_t kGrantsAheadOfPushes = 16;

}  // namespace

StepLoop::StepLoop(StepLoopOptions options, std::vector<PsControl*> shards, Executor* executor,
                   const Clock* clock, std::function<void(const CommittedStep&)> on_commit,
                   StatusCallback on_end)
    : options_(std::move(options)),
      shards_(std::move(shards)),
      executor_(executor),
      clock_(clock),
      on_commit_(std::move(on_commit)),
      on_end_(std::move(on_end)),
      required_(options_.required),
      global_step_(options_.start),
      next_grant_(options_.start),
      progress_(shards_.size(), StepProgress{.step = options_.start}),
      grants_(shards_.size()),
      watches_(shards_.size()),
      views_(shards_.size()) {
  LOCKSTEP_CHECK(!shards_.empty() && options_.start < limit());
}

void StepLoop::Start() { OpenGrants(); }

void StepLoop::Tick() {
  const absl::Duration now = clock_->Monotonic();
  for (size_t shard = 0; shard < shards_.size() && !ended_; ++shard) {
    const ShardProblem& problem = progress_[shard].problem;
    const absl::Status lost = CheckPatience(problem, now - problem.since, options_.patience);
    if (!lost.ok()) return End(lost);
    // A copy: sending may answer at once and change the grants.
    const std::vector<Grant> grants = grants_[shard];
    for (const Grant& grant : grants) {
      if (grant.retry.IsDue(now)) SendGrant(shard, grant.step);
    }
    if (grants.empty()) Watch(shard);
    if (!progress_[shard].problem.ok()) AskWhetherBack(shard);
  }
  if (!ended_ && commit_.IsDue(now)) SendCommit();
}

void StepLoop::SetRequired(uint32_t required) {
  if (std::exchange(required_, required) == required) return;
  UpdateRequired();
}

void StepLoop::UpdateRequired() {
  for (size_t shard = 0; shard < shards_.size() && !ended_; ++shard) {
    const std::vector<Grant> grants = grants_[shard];
    for (const Grant& grant : grants) {
      if (grant.closed || grant.required == RequiredOf(grant.step)) continue;
      if (Grant* open = Find(shard, grant.step)) {
        ++open->issue;
        open->required = RequiredOf(grant.step);
      }
      SendGrant(shard, grant.step);
    }
  }
}

void StepLoop::HoldFrom(std::optional<GlobalStep> step) {
  held_from_ = step;
  if (!step.has_value() && !ended_) OpenGrants();
}

void StepLoop::OpenGrants() {
  const int64_t ahead = options_.asynchronous ? kGrantsAheadOfPushes : kGrantsAhead;
  const size_t shards = options_.asynchronous ? 1 : shards_.size();
  const GlobalStep most = held_from_.has_value() ? std::min(limit(), *held_from_) : limit();
  const int64_t end = std::min(most.value(), global_step_.value() + ahead);
  next_grant_ = std::max(next_grant_, GlobalStep(end));
  for (int64_t step = global_step_.value(); step < end; ++step) {
    for (size_t shard = 0; shard < shards; ++shard) OpenGrant(shard, GlobalStep(step));
  }
}

void StepLoop::OpenGrant(size_t shard, GlobalStep step) {
  if (Find(shard, step) != nullptr) return;
  grants_[shard].push_back({.step = step, .required = RequiredOf(step)});
  SendGrant(shard, step);
}

StepLoop::Grant* StepLoop::Find(size_t shard, GlobalStep step) {
  for (Grant& grant : grants_[shard]) {
    if (grant.step == step) return &grant;
  }
  return nullptr;
}

void StepLoop::SendGrant(size_t shard, GlobalStep step) {
  Grant* grant = Find(shard, step);
  if (grant == nullptr) return;
  grant->retry.Sent();
  shards_[shard]->Call(
      kGrant, MakeGrant(shard, step),
      On<GrantReply>(executor_, [=, this, issue = grant->issue](absl::StatusOr<GrantReply> reply) {
        OnGrant(shard, step, issue, std::move(reply));
      }));
}

GrantRequest StepLoop::MakeGrant(size_t shard, GlobalStep step) const {
  const bool is_last = step.next() == options_.end;
  const Keep keep = options_.keep(step.next());
  GrantRequest request;
  *request.mutable_command() = options_.command;
  request.set_step(step.value());
  request.set_required(RequiredOf(step));
  request.set_learning_rate(options_.learning_rate(step));
  request.set_keep_values(keep.values);
  request.set_keep_slots(keep.slots);
  if (options_.asynchronous) {
    request.set_last(is_last && shard != kStepShard);  // the step shard knows the last step itself
  } else {
    const bool is_only_shard = shards_.size() == 1;
    request.set_commit(is_only_shard);
    request.set_last(is_only_shard && is_last);
  }
  return request;
}

void StepLoop::OnGrant(size_t shard, GlobalStep step, uint32_t issue,
                       absl::StatusOr<GrantReply> reply) {
  Grant* grant = Find(shard, step);
  if (ended_ || grant == nullptr || grant->closed) return;
  if (!reply.ok()) {
    if (issue != grant->issue) return;  // a later call took its place
    // A grant is parked: its deadline says nothing about the shard.
    const bool deadline = absl::IsDeadlineExceeded(reply.status());
    if (deadline) progress_[shard].problem = {};
    if (deadline || Survives(shard, reply.status())) {
      grant->retry.Failed(reply.status(), clock_->Monotonic());
      if (grant->retry.IsDue(clock_->Monotonic())) SendGrant(shard, step);
    }
    return;
  }
  grant->closed = true;
  grant->retry.Succeeded();
  NoteProgress(shard, step.next(), *reply);
  for (const SmallStatistic& statistic : reply->statistics()) {
    if (statistic.variable() != options_.loss_variable || statistic.values_size() == 0) continue;
    grant->loss = statistic.values(0);
  }
  Proceed();
}

void StepLoop::NoteProgress(size_t shard, GlobalStep step, const GrantReply& reply) {
  StepProgress& progress = progress_[shard];
  progress.problem = {};
  if (options_.asynchronous) step = GlobalStep(reply.shard_step());
  progress.step = std::max(progress.step, step);
  progress.accepted = std::max<uint64_t>(progress.accepted, reply.accepted());
  progress.stale = std::max<uint64_t>(progress.stale, reply.stale());
}

void StepLoop::Proceed() {
  for (size_t i = 0; i < grants_.size(); ++i) {
    const std::vector<Grant>& grants = grants_[waits_for_];
    const bool is_closed = grants.empty() ? options_.asynchronous : grants.front().closed;
    if (!is_closed) return;
    waits_for_ = (waits_for_ + 1) % grants_.size();
  }
  if (options_.asynchronous && AskOthersToKeep()) return;
  options_.asynchronous || shards_.size() == 1 ? Advance() : SendCommit();
}

bool StepLoop::AskOthersToKeep() {
  const Keep keep = options_.keep(global_step_.next());
  if (!keep.values && !keep.slots && global_step_.next() != options_.end) return false;
  bool is_asked = false;
  for (size_t shard = kStepShard + 1; shard < shards_.size(); ++shard) {
    is_asked |= grants_[shard].empty();
    OpenGrant(shard, global_step_);
  }
  return is_asked;
}

void StepLoop::Watch(size_t shard) {
  Retry& watch = watches_[shard];
  if (!watch.is_idle() && !watch.IsDue(clock_->Monotonic())) return;
  watch.Sent();
  GrantRequest request;
  *request.mutable_command() = options_.command;
  request.set_step(options_.start.value());
  request.set_required(required_);
  shards_[shard]->Call(
      kGrant, request,
      On<GrantReply>(executor_, [=, this](const absl::StatusOr<GrantReply>& reply) {
        if (ended_) return;
        if (reply.ok()) {
          watches_[shard].Succeeded();
          NoteProgress(shard, GlobalStep(), *reply);
        } else if (Survives(shard, reply.status())) {
          watches_[shard].Failed(reply.status(), clock_->Monotonic());
        }
      }));
}

void StepLoop::AskWhetherBack(size_t shard) {
  Retry& view = views_[shard];
  if (!view.is_idle() && !view.IsDue(clock_->Monotonic())) return;
  view.Sent();
  shards_[shard]->Call(
      kGetView, GetViewRequest(),
      On<SetViewReply>(executor_, [=, this](const absl::StatusOr<SetViewReply>& reply) {
        if (ended_) return;
        if (reply.ok()) {
          views_[shard].Succeeded();
          progress_[shard].problem = {};
        } else {
          views_[shard].Failed(reply.status(), clock_->Monotonic());
        }
      }));
}

void StepLoop::SendCommit() {
  if (commit_.in_flight()) return;
  commit_.Sent();
  const GlobalStep step = global_step_;
  CommitStepRequest request;
  *request.mutable_command() = options_.command;
  request.set_step(step.value());
  request.set_last(step.next() == options_.end);
  shards_[kStepShard]->Call(
      kCommitStep, request,
      On<CommitStepReply>(executor_, [=, this](absl::StatusOr<CommitStepReply> reply) {
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
  progress_[kStepShard].problem = {};
  Advance();
}

void StepLoop::Advance() {
  const CommittedStep committed{.global_step = global_step_.next(),
                                .loss = grants_[kStepShard].front().loss};
  global_step_ = committed.global_step;
  for (std::vector<Grant>& grants : grants_) {
    if (!grants.empty()) grants.erase(grants.begin());
  }
  // The next grants leave before anybody looks at the step that is over.
  if (global_step_ < limit()) OpenGrants();
  on_commit_(committed);
  if (ended_) return;
  if (global_step_ == limit()) return End(absl::OkStatus());
  Proceed();
}

bool StepLoop::Survives(size_t shard, const absl::Status& error) {
  if (IsTransient(error)) {
    progress_[shard].problem.RecordError(error, clock_->Monotonic());
    return true;
  }
  if (ExitCodeFor(error) == ExitCode::kPeersLost) {
    End(error);  // it has lost its variables, and says what to do
  } else if (absl::IsFailedPrecondition(error)) {
    // It was started again, and has got another job.
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
