// A job run from the decision to end it.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/membership/describe.h"
#include "chief/plan/messages.h"
#include "chief/service/job_run.h"
#include "common/base/exit_code.h"
#include "common/base/quantity.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

// For the workers to hear the end, and again for the ps.
constexpr absl::Duration kEndGrace = absl::Seconds(2);

}  // namespace

void JobRun::NoteSave(GlobalStep version, const absl::StatusOr<std::string>& folder) {
  if (folder.ok()) {
    saved_ = std::max(saved_, version);
    record_.checkpoint = *folder;
    record_.save_error.clear();
    return log::Info(absl::StrCat("checkpoint ", *folder));
  }
  const std::string error = absl::StrCat("no checkpoint at step ", WithCommas(version.value()),
                                         ": ", folder.status().message());
  // A save that is repeated says what is wrong once, and again when the stall is reported.
  if (std::exchange(record_.save_error, error) != error) Warn(error);
}

void JobRun::RetryLastSave(const absl::Status& why) {
  const absl::Duration now = clock_->Monotonic();
  if (last_save_.error.ok()) last_save_.failing_since = now;
  last_save_.error = why;
  last_save_.retry.Failed(why, now);
  if (phase_ == Phase::kSaving) DrainIfIdle();
}

void JobRun::WatchLastSave() {
  if (last_save_.error.ok() || checkpointer_->busy()) return;
  const absl::Duration now = clock_->Monotonic();
  if (now - last_save_.failing_since >= options_.patience) {
    return Finish(
        WithExitCode(
            absl::UnavailableError(absl::StrCat(
                "the last checkpoint could not be written for ",
                DurationText(now - last_save_.failing_since), ": ", last_save_.error.message(),
                ". The ps keep the model. Remedy: repair the checkpoint folder, then "
                "start the chief again: it saves the model and ends the job")),
            ExitCode::kPeersLost),
        Told::kWorkers);
  }
  if (last_save_.retry.IsDue(now)) Save(plan_.max_steps);
}

bool JobRun::MaySave() const {
  return phase_ >= Phase::kGathering && phase_ < Phase::kSaving &&
         !plan_.job.checkpoint().folder().empty() && options_.drain > absl::ZeroDuration();
}

void JobRun::EndAfterSaving(absl::Status outcome, Told told) {
  if (phase_ >= Phase::kSaving) return;
  if (!MaySave()) {
    if (phase_ >= Phase::kTraining && plan_.job.checkpoint().folder().empty()) {
      log::Warning("nothing is saved: the job has no checkpoint folder");
    }
    return Finish(std::move(outcome), told);
  }
  log::Info(absl::StrCat("saving the last committed step: ", outcome.message()));
  phase_ = Phase::kSaving;
  outcome_ = std::move(outcome);
  told_ = told;
  drain_deadline_ = clock_->Monotonic() + options_.drain;
  save_next_.clear();
  if (steps_.has_value()) steps_->Stop();
  views_->Stop();
  DrainIfIdle();
}

// After the save that is under way.
void JobRun::DrainIfIdle() {
  if (checkpointer_->busy() || drain_.has_value()) return;
  if (record_.global_step <= saved_) return Finish(std::move(outcome_), told_);
  StepLoopOptions steps = MakeStepOptions();
  if (steps_.has_value()) steps.required = steps_->required();
  drain_.emplace(DrainOptions{.view = initialized_.view,
                              .shard_names = shard_names_,
                              .saved = saved_,
                              .steps = std::move(steps),
                              .checkpoints = MakeCheckpointerOptions()},
                 shards_, executor_, clock_,
                 [this](const absl::StatusOr<Drain::Saved>& saved) { OnDrained(saved); });
  drain_->Start();
}

void JobRun::OnDrained(const absl::StatusOr<Drain::Saved>& saved) {
  if (absl::IsAborted(saved.status())) return Finish(saved.status(), told_);
  if (!saved.ok()) return FinishUnsaved(saved.status());
  if (!saved->folder.empty()) NoteSave(saved->step, saved->folder);
  Finish(std::move(outcome_), told_);
}

void JobRun::WatchDrain() {
  if (drain_.has_value()) drain_->Tick();
  if (phase_ != Phase::kSaving || clock_->Monotonic() < drain_deadline_) return;
  FinishUnsaved(absl::DeadlineExceededError(absl::StrCat(
      "not written within ", DurationText(options_.drain), " (--drain): ", SavingWaitsFor())));
}

// What could not be saved stays at the ps where the job can go on.
void JobRun::FinishUnsaved(const absl::Status& why) {
  NoteSave(record_.global_step, why);
  const bool can_go_on = ExitCodeFor(outcome_) == ExitCode::kPeersLost;
  Finish(std::move(outcome_), can_go_on && told_ == Told::kEverybody ? Told::kWorkers : told_);
}

void JobRun::Finish(absl::Status outcome, Told told) {
  if (phase_ >= Phase::kTelling) return;
  // An error is the last line that the chief prints; who asked for the end is told here alone.
  if (absl::IsCancelled(outcome)) {
    log::Info(absl::StrCat(told == Told::kNobody
                               ? "this chief ends and leaves ps and workers to the next one: "
                               : "the job ends: ",
                           outcome.message()));
  } else if (!outcome.ok()) {
    log::Info("the job ends with an error");
  }
  // A start that can be tried again leaves the ps to the next chief.
  const bool try_again = ExitCodeFor(outcome) == ExitCode::kPeersLost && phase_ < Phase::kTraining;
  phase_ = Phase::kTelling;
  outcome_ = std::move(outcome);
  if (steps_.has_value()) steps_->Stop();
  if (views_.has_value()) views_->Stop();
  if (drain_.has_value()) drain_->Stop();
  if (told == Told::kNobody) return End();
  calls_.End(outcome_);
  const bool has_shards = initialized_.view.command().job() != 0;
  releases_shards_ = told == Told::kEverybody && !try_again && has_shards;
  end_deadline_ = clock_->Monotonic() + kEndGrace;
  WatchEnd();
}

void JobRun::WatchEnd() {
  const bool late = clock_->Monotonic() >= end_deadline_;
  if (phase_ == Phase::kTelling && (late || calls_.EverybodyKnows())) return ReleaseShards();
  if (phase_ != Phase::kReleasing) return;
  release_->Tick();
  if (!late || phase_ != Phase::kReleasing) return;
  log::Warning(absl::StrCat("not told that the job is over: ", release_->DescribeWaiting()));
  End();
}

void JobRun::ReleaseShards() {
  phase_ = Phase::kReleasing;
  end_deadline_ = clock_->Monotonic() + kEndGrace;
  if (!releases_shards_) return End();
  FinishRequest request;
  *request.mutable_command() = initialized_.view.command();
  request.set_exit_code(static_cast<int>(ExitCodeFor(outcome_)));
  request.set_reason(std::string(outcome_.message()));
  // A ps that is being started again is told, too: it would wait for a chief for nothing.
  release_.emplace(
      shard_names_, clock_,
      [this, request](size_t shard, std::function<void(absl::Status)> answered) {
        FinishRequest finish = request;
        if (drain_.has_value()) finish.mutable_command()->set_term(drain_->TermOf(shard));
        shards_[shard]->Finish(
            finish,
            On<FinishReply>(executor_, [answered](const absl::StatusOr<FinishReply>& reply) {
              if (reply.ok() || IsTransient(reply.status())) return answered(reply.status());
              log::Warning(reply.status().message());
              answered(absl::OkStatus());
            }));
      },
      [this](const absl::Status&) { End(); });
  release_->Start();
}

void JobRun::End() {
  phase_ = Phase::kOver;
  on_end_(outcome_);
}

}  // namespace lockstep::chief
