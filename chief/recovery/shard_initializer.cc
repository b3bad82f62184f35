#include "chief/recovery/shard_initializer.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/annotate.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/fs/fs_error.h"
#include "common/replicas_proto/convert.h"

namespace lockstep::chief {
namespace {

// Of a large model the first variables say enough.
constexpr size_t kMissingNamed = 4;

// For shards of a job that is done.
constexpr absl::Duration kDonePatience = absl::Seconds(1);

// Well before a ps that has not been asked for some time would say that nobody does.
constexpr absl::Duration kKeepaliveInterval = absl::Seconds(3);

// Also where the step shard entered that term although its answer was an error: its copy refused.
bool FollowsOwn(const RecoverySpec& spec, const SetViewRequest& next, const CommandStatus& last) {
  return last.chief() == spec.chief.value() && last.term() + 1 == next.command().term();
}

// Answers of shards that were first asked so long ago may be of no use: a chief that was only
// stopped may have gone on since.
constexpr absl::Duration kOldAnswers = absl::Seconds(1);
constexpr int kMostAskings = 4;  // where each takes so long

// Since they were asked `before`.
bool HaveMoved(const std::vector<SetViewReply>& before, const std::vector<SetViewReply>& now) {
  return !std::ranges::equal(before, now, {}, &SetViewReply::shard_step, &SetViewReply::shard_step);
}

}  // namespace

ShardInitializer::ShardInitializer(RecoverySpec spec, CommandHooks hooks,
                                   std::vector<PsControl*> shards, Executor* executor,
                                   const Clock* clock, const Clock* real_clock,
                                   Callback<InitializedShards> on_done)
    : given_(std::move(spec)),
      spec_(given_),
      hooks_(std::move(hooks)),
      shards_(std::move(shards)),
      executor_(executor),
      clock_(clock),
      real_clock_(real_clock),
      on_done_(std::move(on_done)),
      states_(shards_.size()) {
  result_.bytes.resize(shards_.size());
}

void ShardInitializer::Tick() {
  if (phases_.empty()) return;
  ShardCalls* const phase = phases_.back().get();
  phase->Tick();
  // A ps that has ended needs no call.
  if (spec_.is_done() && clock_->Monotonic() - phase_began_ >= kDonePatience) phase->Finish();
  SendKeepalives();
}

void ShardInitializer::SendKeepalives() {
  const absl::Duration now = clock_->Monotonic();
  if (asking_->ended() || now < next_keepalive_) return;
  next_keepalive_ = now + kKeepaliveInterval;
  for (size_t shard = 0; shard < shards_.size(); ++shard) {
    if (!asking_->HasAnswered(shard)) continue;
    shards_[shard]->Call(kGetView, GetViewRequest(), [](const absl::StatusOr<SetViewReply>&) {});
  }
}

std::string ShardInitializer::DescribeWaiting() const {
  if (phases_.empty()) return "";
  const std::string waiting = phases_.back()->DescribeWaiting();
  return waiting.empty() ? waiting : absl::StrCat(waiting, DescribeMissing());
}

bool ShardInitializer::MayBeDone() const {
  const bool is_asking = asking_ != nullptr && !asking_->ended();
  if (!is_asking || !asking_->HasAnswered(kStepShard)) return false;
  const SetViewReply& seen = states_[kStepShard];
  if (!seen.has_variables()) return true;
  const int64_t end = spec_.end.value();
  return seen.global_step() >= end && std::ranges::count(seen.kept_versions(), end) == 0;
}

absl::Status ShardInitializer::Problem(size_t shard) const {
  if (phases_.empty()) return absl::UnavailableError("");
  return phases_.back()->Problem(shard);
}

std::string ShardInitializer::DescribeMissing() const {
  std::vector<std::string> missing;
  for (const VariableSpec& variable : spec_.variables.placement().variables()) {
    if (creating_ == nullptr || creating_->HasAnswered(variable.shard())) continue;
    missing.push_back(variable.name());
  }
  if (missing.empty()) return "";
  const size_t named = std::min(missing.size(), kMissingNamed);
  const size_t others = missing.size() - named;
  missing.resize(named);
  return absl::StrCat("; not initialised: ", absl::StrJoin(missing, ", "),
                      others == 0 ? "" : absl::StrCat(" and ", others, " more"));
}

std::unique_ptr<ShardCalls> ShardInitializer::Calls(ShardCalls::Call call,
                                                    void (ShardInitializer::*next)()) {
  phase_began_ = clock_->Monotonic();
  return std::make_unique<ShardCalls>(
      spec_.shard_names, clock_, std::move(call),
      [this, next](absl::Status status) { status.ok() ? (this->*next)() : OnRefused(status); });
}

void ShardInitializer::OnRefused(const absl::Status& status) {
  // A chief that has died meanwhile was the first to name the job, or to have this term. A shard
  // that still has no job refuses this chief for another reason, such as another cluster spec.
  const bool named_job = std::exchange(names_job_, false) && absl::IsFailedPrecondition(status);
  const bool had_term = std::exchange(takes_term_, false) && absl::IsAborted(status);
  const bool came_second = (named_job && !std::exchange(has_lost_naming_, true)) ||
                           (had_term && !std::exchange(has_asked_again_, true));
  if (came_second) return Start();
  on_done_(status);
}

void ShardInitializer::FollowCommand(const Command& before) {
  given_.job = before.job();
  given_.least_term = before.term() + 1;
}

void ShardInitializer::SetNames(const std::vector<std::string>& shard_names) {
  given_.shard_names = spec_.shard_names = shard_names;
  for (const auto& phase : phases_) phase->SetNames(shard_names);
}

void ShardInitializer::Start() {
  ++askings_;
  asked_ = real_clock_->Monotonic();
  phases_.push_back(Calls(
      [this](size_t shard, StatusCallback answered) {
        shards_[shard]->Call(
            kGetView, GetViewRequest(),
            On<SetViewReply>(executor_, [=, this, answered = std::move(answered)](
                                            absl::StatusOr<SetViewReply> reply) mutable {
              if (reply.ok()) states_[shard] = *reply;
              answered(reply.status());
            }));
      },
      &ShardInitializer::SetViews));
  asking_ = phases_.back().get();
  next_keepalive_ = clock_->Monotonic() + kKeepaliveInterval;
  phases_.back()->Start();
}

bool ShardInitializer::AskAgain() {
  const bool begins_anew =
      result_.start == StartPoint::kAsSpecified || result_.start == StartPoint::kPlanAfresh;
  const bool are_old = real_clock_->Monotonic() - asked_ >= kOldAnswers;
  if (!begins_anew || !are_old || askings_ >= kMostAskings) return false;
  Start();
  return true;
}

void ShardInitializer::SetViews() {
  const std::vector<SetViewReply> before = std::exchange(seen_apart_, {});
  if (before.empty() && AreStepsApart(given_, states_)) {
    seen_apart_ = states_;
    return Start();
  }
  const absl::StatusOr<StartPoint> start =
      ChooseStart(given_, states_, !before.empty() && HaveMoved(before, states_));
  if (!start.ok()) return on_done_(start.status());
  result_.start = *start;
  if (AskAgain()) return;
  if (*start == StartPoint::kPlanAfresh) return Finish();
  result_.job_before = states_[kStepShard].job_text();
  result_.model_before = states_[kStepShard].model_text();
  spec_ = RecoverySpecFor(*start, given_, states_);
  absl::StatusOr<SetViewRequest> view = TakeCommand(spec_, states_);
  if (!view.ok()) return on_done_(view.status());
  result_.view = *std::move(view);
  if (hooks_.may_take != nullptr) {
    const bool follows_own = FollowsOwn(spec_, result_.view, states_[kStepShard].command_status());
    const absl::Status status = hooks_.may_take(result_.view, follows_own);
    if (!status.ok()) return on_done_(status);
  }
  if (result_.start == StartPoint::kDone) return SetStepShardView();
  hooks_.before(result_.view, [this](const absl::Status& status) {
    if (!status.ok()) return on_done_(status);
    // The disk may have taken long.
    if (!AskAgain()) SetStepShardView();
  });
}

void ShardInitializer::SetStepShardView() {
  names_job_ = states_[kStepShard].job() == 0;
  // A standby that comes second leaves the job to the one that was faster.
  takes_term_ = spec_.mode != StartMode::kSucceed;
  Announce(AnnounceTo::kStepShard, &ShardInitializer::OnStepShardView);
}

void ShardInitializer::OnStepShardView() {
  names_job_ = takes_term_ = false;
  if (result_.start == StartPoint::kDone) return SetOtherViews();
  hooks_.accepted(result_.view, result_.start, [this](const absl::Status& status) {
    status.ok() ? SetOtherViews() : on_done_(status);
  });
}

void ShardInitializer::SetOtherViews() { Announce(AnnounceTo::kOthers, &ShardInitializer::Judge); }

void ShardInitializer::Announce(AnnounceTo to, void (ShardInitializer::*next)()) {
  phases_.push_back(Calls(AnnounceView(to, result_.view, shards_, executor_, &states_), next));
  phases_.back()->Start();
}

void ShardInitializer::Judge() {
  if (result_.start == StartPoint::kDone) return Finish();
  absl::StatusOr<JobProgress> progress = FindProgress(spec_, states_);
  // Only shards that have trained are refused.
  if (!progress.ok() || progress->has_trained) result_.start = StartPoint::kTakeOver;
  if (absl::Status status = FindReplicaViews(); !status.ok()) return on_done_(status);
  if (!progress.ok()) return on_done_(progress.status());
  result_.progress = *std::move(progress);
  if (takes_over()) {
    if (absl::Status status = PrepareTakeOver(); !status.ok()) return on_done_(status);
  }
  Create();
}

// A shard that had trained when it was asked may have been started again since then.
absl::Status ShardInitializer::PrepareTakeOver() {
  LOCKSTEP_RETURN_IF_ERROR(CheckNoneLost(spec_, states_));
  if (hooks_.taken_over == nullptr) return absl::OkStatus();
  return hooks_.taken_over(result_.job_before, &spec_.variables);
}

// A view that not every shard has was announced for a step that no shard has been granted.
absl::Status ShardInitializer::FindReplicaViews() {
  for (size_t shard = 0; shard < states_.size(); ++shard) {
    auto views = FromProto(states_[shard].replica_views());
    if (!views.ok()) return Annotate(views.status(), spec_.shard_names[shard]);
    const bool is_newer =
        !views->empty() && (result_.replica_views.empty() ||
                            views->newest().number > result_.replica_views.newest().number);
    if (is_newer) result_.replica_views = *std::move(views);
  }
  return absl::OkStatus();
}

void ShardInitializer::Create() {
  phases_.push_back(Calls(
      [this](size_t shard, StatusCallback answered) {
        CreateVariablesRequest request = spec_.variables;
        *request.mutable_command() = result_.view.command();
        shards_[shard]->Call(
            kCreateVariables, request,
            On<CreateVariablesReply>(executor_,
                                     [=, this, answered = std::move(answered)](
                                         absl::StatusOr<CreateVariablesReply> reply) mutable {
                                       if (reply.ok()) result_.bytes[shard] = reply->bytes();
                                       answered(CreationError(reply.status()));
                                     }));
      },
      &ShardInitializer::Finish));
  creating_ = phases_.back().get();
  phases_.back()->Start();
}

// A job that has trained does not end because its storage has failed for a moment, or because
// processes still hold values of the epoch before. At its start both are final.
absl::Status ShardInitializer::CreationError(const absl::Status& status) {
  const bool lacks_memory =
      absl::IsResourceExhausted(status) && ExitCodeFor(status) == ExitCode::kBadConfiguration;
  if (spec_.retries_creation && (lacks_memory || IsStorageFailure(status))) {
    creation_failure_ = status;
    return absl::UnavailableError(status.message());
  }
  return lacks_memory ? absl::FailedPreconditionError(status.message()) : status;
}

void ShardInitializer::Finish() { on_done_(result_); }

}  // namespace lockstep::chief
