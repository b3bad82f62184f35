#include "chief/service/job_run.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/membership/describe.h"
#include "chief/plan/messages.h"
#include "chief/service/job_rules.h"
#include "chief/service/summary.h"
#include "common/base/exit_code.h"
#include "common/base/quantity.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kStartReminder = absl::Seconds(5);
constexpr absl::Duration kStallReminder = absl::Seconds(10);
constexpr absl::Duration kProgressLine = absl::Seconds(3);
// Losses of longer jobs are recorded only when asked for.
constexpr int64_t kRecordedSteps = 10000;

}  // namespace

JobRun::JobRun(JobPlan plan, JobRunOptions options, std::vector<PsControl*> shards,
               Executor* executor, const Clock* clock, std::function<void()> on_ready,
               std::function<void(absl::Status)> on_end)
    : plan_(std::move(plan)),
      options_(std::move(options)),
      shards_(std::move(shards)),
      shard_names_(ShardNames(plan_.cluster)),
      executor_(executor),
      clock_(clock),
      on_ready_(std::move(on_ready)),
      on_end_(std::move(on_end)),
      evaluate_at_(EvaluateAt(plan_)),
      save_at_(SaveAt(plan_)),
      quorum_rules_(QuorumRulesOf(plan_)),
      shard_variables_(CountVariables(plan_)),
      variables_per_gradient_(VariablesPerGradient(plan_)),
      started_(clock->Monotonic()),
      membership_(plan_.cluster.workers, options_.lease, started_),
      evaluations_(MakeEvaluationQueue(plan_)),
      calls_(plan_.cluster.Canonical(), &membership_, evaluations_ ? &*evaluations_ : nullptr,
             clock,
             {.members_changed = [this] { OnMembersChanged(); },
              .admitted =
                  [this](const LiveMember& member) {
                    return views_.has_value() && views_->IsConfirmed(member);
                  },
              .waiting_for = [this] { return StartWaitsFor(); },
              .worker_failed =
                  [this](absl::Status why) { EndAfterSaving(std::move(why), Told::kEverybody); },
              .result_arrived = [this] { TakeEvaluations(); },
              .warn = [this](std::string text) { Warn(std::move(text)); }}),
      probe_(plan_.cluster.ps, options_.fetch_status, executor),
      initializer_(
          {.shard_names = shard_names_,
           .cluster = plan_.cluster.Canonical(),
           .job = options_.job_id,
           .epoch = plan_.epoch,
           .variables = ToCreateVariables(plan_),
           .end = plan_.max_steps,
           .mode = plan_.mode,
           .earlier = plan_.earlier},
          shards_, executor, clock,
          [this](absl::StatusOr<InitializedShards> shards) { OnInitialized(std::move(shards)); }),
      start_reminder_(kStartReminder, started_),
      stall_reminder_(kStallReminder, started_),
      progress_line_(kProgressLine, started_) {
  record_.start = plan_.start;
  record_.global_step = saved_ = plan_.start;
}

void JobRun::Warn(std::string text) {
  log::Warning(text);
  record_.warnings.Add(std::move(text));
}

void JobRun::Start() { initializer_.Start(); }

void JobRun::Tick() {
  calls_.Tick();
  initializer_.Tick();
  if (views_.has_value()) views_->Tick();
  if (snapshots_.has_value()) snapshots_->Tick();
  if (steps_.has_value()) steps_->Tick();
  switch (phase_) {
    case Phase::kInitializing:
    case Phase::kGathering:
      return WatchStart();
    case Phase::kTraining:
      WatchQuorum();
      return WatchTraining();
    case Phase::kCompleting:
      WatchLastSave();
      WatchEvaluationQuorum();
      return WatchTraining();
    case Phase::kSaving:
      return WatchDrain();
    case Phase::kTelling:
    case Phase::kReleasing:
      return WatchEnd();
    case Phase::kOver:
      return;
  }
}

Keep JobRun::KeepAt(GlobalStep version) const {
  const bool save = save_at_.IsDue(version);
  return {.values = save || evaluate_at_.IsDue(version), .slots = save};
}

void JobRun::OnCommit(const CommittedStep& step) {
  const absl::Duration now = clock_->Monotonic();
  record_.global_step = step.global_step;
  record_.loss = step.loss.value_or(record_.loss);
  record_.last_commit = now;
  record_.rate.Add(step.global_step, now);
  if (options_.record_losses || plan_.max_steps.value() - record_.start.value() <= kRecordedSteps) {
    record_.losses.push_back(step.loss.value_or(std::nanf("")));
  }
  record_.accepted = record_.stale = 0;
  for (const ShardProgress& shard : steps_->shards()) {
    record_.accepted += shard.accepted;
    record_.stale += shard.stale;
  }
  if (!std::isfinite(record_.loss) && !std::exchange(told_of_loss_, true)) {
    Warn(absl::StrCat("the loss of step ", WithCommas(step.global_step.value() - 1),
                      " is not a finite number. Remedy: lower the learning rate, check the data"));
  }
  if (stall_reminder_.IsSilent(now)) log::Info("steps go on");
  stall_reminder_.Progress(now);
  pending_at_ps_.clear();

  const bool is_done = step.global_step == plan_.max_steps && initialized_.progress.is_finished;
  if (!is_done) Milestone(step.global_step, step.global_step == plan_.max_steps);
}

void JobRun::TakeUpMilestones() {
  const JobProgress& progress = initialized_.progress;
  for (const GlobalStep version : progress.kept) {
    // A later one is committed by this chief, and comes up then.
    if (version > progress.step) continue;
    const bool is_whole = std::ranges::count(progress.kept_by_all, version) > 0;
    const bool is_due = evaluate_at_.IsDue(version) || save_at_.IsDue(version);
    if (is_whole && is_due) {
      Milestone(version, /*must=*/true);
    } else {
      snapshots_->Hold(version, 0);
    }
  }
}

void JobRun::Milestone(GlobalStep version, bool must) {
  const bool evaluate = evaluate_at_.IsDue(version);
  const bool save = save_at_.IsDue(version);
  if (!evaluate && !save) return;
  int users = 0;
  if (evaluate && evaluations_->Begin(version, must)) {
    ++users;
    calls_.AssignLeases();
  } else if (evaluate) {
    Warn(absl::StrCat("no evaluation at step ", WithCommas(version.value()),
                      ": the one before is not done yet"));
  }
  const bool busy = checkpointer_->busy();
  if (save && (!busy || must)) ++users;
  snapshots_->Hold(version, users);
  if (save && !busy) {
    Save(version);
  } else if (save && must) {
    save_next_.push_back(version);
  } else if (save) {
    Warn(absl::StrCat("no checkpoint at step ", WithCommas(version.value()),
                      ": the one before is not written yet"));
  }
}

void JobRun::TakeEvaluations() {
  stall_reminder_.Progress(clock_->Monotonic());
  while (const std::optional<EvaluationTotals> totals = evaluations_->TakeFinished()) {
    log::Info(EvaluationLine(plan_, *totals));
    record_.evaluations.push_back(*totals);
    snapshots_->NoteEvaluation(ToKept(*totals));
    snapshots_->Release(totals->version);
  }
  CompleteIfDone();
}

void JobRun::Save(GlobalStep version) {
  checkpointer_->Save(version, [this, version](const absl::StatusOr<std::string>& folder) {
    OnSaved(version, folder);
  });
}

void JobRun::OnSaved(GlobalStep version, const absl::StatusOr<std::string>& folder) {
  if (phase_ >= Phase::kTelling) return;
  if (folder.ok()) stall_reminder_.Progress(clock_->Monotonic());
  if (absl::IsAborted(folder.status())) return Finish(folder.status());
  NoteSave(version, folder);
  if (!folder.ok() && version == plan_.max_steps) return RetryLastSave(folder.status());
  if (version == plan_.max_steps) last_save_ = {};
  snapshots_->Release(version);
  if (phase_ == Phase::kSaving) return DrainIfIdle();
  if (!save_next_.empty()) {
    const GlobalStep next = save_next_.front();
    save_next_.pop_front();
    Save(next);
  }
  CompleteIfDone();
}

void JobRun::OnStepsEnded(absl::Status status) {
  if (phase_ != Phase::kTraining) return;
  if (!status.ok()) return Finish(std::move(status));
  phase_ = Phase::kCompleting;
  log::Info(ProgressLine(plan_, record_, clock_->Monotonic()));
  CompleteIfDone();
}

// The last step is committed: what is still evaluated or saved?
void JobRun::CompleteIfDone() {
  if (phase_ != Phase::kCompleting || IsSaving() ||
      (evaluations_.has_value() && evaluations_->running() != nullptr)) {
    return;
  }
  Finish(absl::OkStatus());
}

void JobRun::WatchTraining() {
  const absl::Duration now = clock_->Monotonic();
  if (phase_ == Phase::kTraining && record_.global_step != reported_step_ &&
      progress_line_.Due(now)) {
    reported_step_ = record_.global_step;
    log::Info(ProgressLine(plan_, record_, now));
  }
  if (!stall_reminder_.Due(now)) return;
  log::Warning(absl::StrCat("waiting for ", WaitingFor(now)));
  if (!options_.fetch_status || phase_ != Phase::kTraining) return;
  probe_.Start([this](const PsPending& pending) { OnProbed(pending); });
}

void JobRun::OnProbed(const PsPending& pending) {
  pending_at_ps_ = pending.text;
  if (!pending_at_ps_.empty()) log::Warning(pending_at_ps_);
  const Stall now{record_.global_step, membership_.changes(), stall_.probes};
  const bool is_same = now == stall_;
  stall_ = now;
  stall_.probes = IsStalled(pending) ? (is_same ? now.probes + 1 : 1) : 0;
}

// The ps are asked one after another, so once is no proof.
bool JobRun::IsStalled(const PsPending& pending) {
  const uint32_t able = membership_.CountFor(record_.global_step, membership_.Live()).able;
  const bool all_reached =
      std::ranges::all_of(steps_->shards(), [](const auto& shard) { return shard.problem.ok(); });
  return phase_ == Phase::kTraining && quorum_rules_.counts_stamps && all_reached &&
         !pending.text.empty() && able > 0 && pending.waiting_for_tokens >= able;
}

}  // namespace lockstep::chief
