#include "chief/job/drain.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/recovery/announce_view.h"
#include "common/base/grants_ahead.h"
#include "common/base/lost_variables.h"
#include "common/base/not_kept.h"

namespace lockstep::chief {

Drain::Drain(DrainOptions options, std::vector<PsControl*> shards, Executor* executor,
             const Clock* clock, Callback<Saved> on_done)
    : options_(std::move(options)),
      shards_(std::move(shards)),
      executor_(executor),
      clock_(clock),
      on_done_(std::move(on_done)),
      seen_(shards_.size()) {}

void Drain::Begin(Call call, void (Drain::*next)()) {
  calls_.push_back(std::make_unique<ShardCalls>(
      options_.shard_names, clock_, std::move(call), [this, next](absl::Status status) {
        if (ended_) return;
        status.ok() ? (this->*next)() : End(std::move(status));
      }));
  calls_.back()->Start();
}

void Drain::Start() {
  Begin(
      [this](size_t shard, StatusCallback answered) {
        shards_[shard]->Call(
            kGetView, GetViewRequest(),
            On<SetViewReply>(executor_, [=, this, answered = std::move(answered)](
                                            const absl::StatusOr<SetViewReply>& reply) mutable {
              if (reply.ok()) seen_[shard] = *reply;
              answered(reply.status());
            }));
      },
      &Drain::TakeTerm);
}

void Drain::TakeTerm() {
  Command* command = options_.view.mutable_command();
  for (size_t shard = 0; shard < seen_.size(); ++shard) {
    const SetViewReply& state = seen_[shard];
    if (state.job() == command->job() && state.term() == command->term()) continue;
    if (state.job() == 0) return End(LostVariablesError(options_.shard_names[shard]));
    return End(absl::AbortedError(
        absl::StrCat("the shards are in term ", state.term(), ": another chief commands")));
  }
  command->set_term(command->term() + 1);
  *options_.view.mutable_members() = seen_[kStepShard].members();
  options_.steps.command = options_.checkpoints.command = *command;
  Begin(AnnounceView(AnnounceTo::kStepShard, options_.view, shards_, executor_, &seen_),
        &Drain::TakeOthers);
}

void Drain::TakeOthers() {
  Begin(AnnounceView(AnnounceTo::kOthers, options_.view, shards_, executor_, &seen_),
        &Drain::ChooseStep);
}

void Drain::ChooseStep() {
  step_ = GlobalStep(seen_[kStepShard].global_step());
  if (step_ <= options_.saved) return End(Saved{step_, ""});
  checkpointer_.emplace(options_.checkpoints, shards_, executor_);
  if (options_.steps.asynchronous) return KeepNow();
  HasBegun() ? CloseSteps() : Save();
}

bool Drain::HasBegun() const {
  if (options_.saves_kept_alone) return NewestClosed() > step_;
  for (size_t shard = 0; shard < seen_.size(); ++shard) {
    const GlobalStep closed(std::min(seen_[shard].shard_step(), step_.value() + kGrantsAhead));
    if (options_.turns[shard].ExpectsAny(step_, closed)) return true;
  }
  return false;
}

GlobalStep Drain::NewestClosed() const {
  return GlobalStep(std::ranges::max(seen_, {}, &SetViewReply::shard_step).shard_step());
}

// Under the step shard's number, as a grant of a step that is over does.
void Drain::KeepNow() {
  GrantRequest grant;
  *grant.mutable_command() = options_.view.command();
  grant.set_step(step_.value() - 1);
  grant.set_required(options_.steps.required);
  grant.set_keep_values(true);
  grant.set_keep_slots(true);
  Begin(
      [this, grant](size_t shard, StatusCallback answered) {
        shards_[shard]->Call(
            kGrant, grant,
            On<GrantReply>(executor_, [answered = std::move(answered)](
                                          const absl::StatusOr<GrantReply>& reply) mutable {
              answered(reply.status());
            }));
      },
      &Drain::Save);
}

void Drain::CloseSteps() {
  StepLoopOptions steps = options_.steps;
  steps.start = step_;
  steps.stop_at = step_.next();
  if (options_.saves_kept_alone) {
    // A shard that waits for no gradient has closed the steps that were granted, and keeps none of
    // their versions now.
    const GlobalStep last = std::min(std::max(NewestClosed(), step_).next(), steps.end);
    needs_next_step_ = seen_[kStepShard].shard_step() < last.value();
    steps.stop_at = last;
    steps.keep = [last, keep = options_.steps.keep](GlobalStep version) {
      return version == last ? Keep{.values = true, .slots = true} : keep(version);
    };
  }
  steps_.emplace(
      std::move(steps), shards_, executor_, clock_,
      [this](const CommittedStep& committed) { step_ = committed.global_step; },
      [this](absl::Status status) {
        if (ended_) return;
        needs_next_step_ = false;
        status.ok() ? Save() : End(std::move(status));
      });
  steps_->Start();
}

void Drain::Save() {
  save_.Sent();
  checkpointer_->Save(step_, [this](absl::StatusOr<std::string> folder) {
    if (!ended_) OnSaved(std::move(folder));
  });
}

void Drain::OnSaved(absl::StatusOr<std::string> folder) {
  if (folder.ok()) return End(Saved{step_, *std::move(folder)});
  const bool is_final = absl::IsAborted(folder.status()) || LacksVariables(folder.status());
  if (is_final) return End(folder.status());
  save_error_ = folder.status();
  // A shard has begun the next step, and has the version no more. Of what is wrong with the folder
  // another step would repair nothing.
  const bool can_close = !options_.steps.asynchronous && step_ < options_.steps.end;
  if (IsNotKept(folder.status()) && can_close && !steps_.has_value()) {
    needs_next_step_ = true;
    return CloseSteps();
  }
  save_.Failed(save_error_, clock_->Monotonic());
}

void Drain::Tick() {
  if (ended_) return;
  if (!calls_.empty() && !calls_.back()->ended()) calls_.back()->Tick();
  if (steps_.has_value()) steps_->Tick();
  if (!ended_ && save_.IsDue(clock_->Monotonic())) Save();
}

void Drain::Stop() {
  ended_ = true;
  if (!calls_.empty()) calls_.back()->Stop();
  if (steps_.has_value()) steps_->Stop();
}

DrainFacts Drain::Describe() const {
  using Stage = DrainFacts::Stage;
  const bool asks_shards = !calls_.empty() && !calls_.back()->ended();
  const Stage stage = asks_shards         ? Stage::kAskingShards
                      : save_.in_flight() ? Stage::kWriting
                                          : Stage::kClosingStep;
  return {.stage = stage,
          .problem = !save_error_.ok() ? std::string(save_error_.message())
                     : asks_shards     ? calls_.back()->DescribeWaiting()
                                       : "",
          .step = step_};
}

void Drain::End(absl::StatusOr<Saved> result) {
  Stop();
  on_done_(std::move(result));
}

}  // namespace lockstep::chief
