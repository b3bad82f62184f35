#include "chief/job/milestone_runner.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/job/job_rules.h"
#include "chief/job/log_lines.h"
#include "chief/job/summary.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

constexpr int kLeasesPerTermBits = 32;

}  // namespace

MilestoneRunner::MilestoneRunner(JobState* job)
    : job_(job),
      evaluate_at_(EvaluateAt(job->inputs.plan)),
      save_at_(SaveAt(job->inputs.plan)),
      evaluations_(MakeEvaluationQueue(job->inputs.plan)),
      saved_(job->inputs.plan.start) {}

void MilestoneRunner::Start() {
  const JobInputs& inputs = job_->inputs;
  const Command& command = job_->initialized.view.command();
  // What a worker answers to a lease of an earlier chief is nothing to this one.
  const uint64_t leases_before = uint64_t{command.term()} << kLeasesPerTermBits;
  if (evaluations_.has_value()) evaluations_->CountLeasesFrom(leases_before + 1);
  snapshots_.emplace(command, inputs.shards, inputs.executor, inputs.clock);
  checkpointer_.emplace(MakeCheckpointerOptions(job_), inputs.shards, inputs.executor);
  if (inputs.options.shard_places == nullptr) return;
  kept_.emplace(inputs.shards, inputs.executor, inputs.clock,
                [this](GlobalStep version, size_t shard, const SetViewReply& view) {
                  OnView(version, shard, view);
                });
}

void MilestoneRunner::Tick() {
  if (snapshots_.has_value()) snapshots_->Tick();
  if (kept_.has_value() && !stopped_) {
    const Evaluation* const evaluation = running();
    kept_->Update(evaluation == nullptr ? std::nullopt : std::optional(evaluation->version()),
                  job_->inputs.options.shard_places());
  }
  if (!last_save_.error.ok() && !is_writing() && saves_ && !stopped_) RetryLastSave();
}

void MilestoneRunner::StopSaving() {
  saves_ = false;
  save_next_.clear();
}

Keep MilestoneRunner::KeepAt(GlobalStep version) const {
  const bool save = save_at_.IsDue(version);
  return {.values = save || evaluate_at_.IsDue(version), .slots = save};
}

const Evaluation* MilestoneRunner::running() const {
  return evaluations_.has_value() ? evaluations_->running() : nullptr;
}

void MilestoneRunner::TakeUp(const JobProgress& progress) {
  for (const GlobalStep version : progress.kept) {
    // A later one is committed by this chief, and comes up then.
    if (version > progress.step) {
      kept_ahead_.insert(version);
      continue;
    }
    const bool is_whole = std::ranges::count(progress.kept_by_all, version) > 0;
    const bool is_due = evaluate_at_.IsDue(version) || save_at_.IsDue(version);
    if (is_whole && is_due) {
      Begin(version, /*must=*/true);
    } else {
      snapshots_->Hold(version, 0);
    }
  }
}

void MilestoneRunner::Begin(GlobalStep version, bool must) {
  const bool evaluate = evaluate_at_.IsDue(version);
  const bool save = save_at_.IsDue(version);
  const bool is_kept = kept_ahead_.erase(version) > 0;
  if (!evaluate && !save && !is_kept) return;
  int users = 0;
  if (evaluate && evaluations_->Begin(version, must)) {
    ++users;
    job_->calls->AssignLeases();
  } else if (evaluate) {
    job_->Warn(EvaluationSkippedWarning(version));
  }
  const bool is_busy = is_writing();
  if (save && (!is_busy || must)) ++users;
  snapshots_->Hold(version, users);
  if (save && !is_busy) {
    Save(version);
  } else if (save && must) {
    save_next_.push_back(version);
  } else if (save) {
    job_->Warn(SaveSkippedWarning(version));
  }
}

void MilestoneRunner::TakeEvaluations() {
  while (const std::optional<EvaluationTotals> totals = evaluations_->TakeFinished()) {
    log::Info(EvaluationLine(job_->inputs.plan, *totals));
    job_->record.AddEvaluation(*totals);
    snapshots_->NoteEvaluation(ToKept(*totals));
    snapshots_->Release(totals->version);
  }
  job_->control->Notify(JobEvent::kMilestoneEnded);
}

void MilestoneRunner::OnView(GlobalStep version, size_t shard, const SetViewReply& view) {
  const bool is_running = running() != nullptr && running()->version() == version;
  if (stopped_ || !is_running) return;
  // After the last step values stay as they are; averages are read of kept versions alone.
  const bool stays = version == job_->inputs.plan.max_steps &&
                     view.shard_step() == version.value() &&
                     !job_->inputs.plan.job.evaluation().use_averages();
  if (!stays && std::ranges::count(view.kept_versions(), version.value()) == 0) {
    AbandonEvaluation(shard);
  }
}

// No worker could read the version from that shard, so the evaluation would never end.
void MilestoneRunner::AbandonEvaluation(size_t shard) {
  const GlobalStep version = running()->version();
  job_->Warn(EvaluationLostWarning(version, job_->inputs.shard_names[shard]));
  evaluations_->Abandon();
  snapshots_->Release(version);
  job_->calls->AssignLeases();
  job_->control->Notify(JobEvent::kMilestoneEnded);
}

void MilestoneRunner::Save(GlobalStep version) {
  checkpointer_->Save(version, [this, version](const absl::StatusOr<std::string>& folder) {
    OnSaved(version, folder);
  });
}

void MilestoneRunner::OnSaved(GlobalStep version, const absl::StatusOr<std::string>& folder) {
  if (stopped_) return;
  if (absl::IsAborted(folder.status())) return job_->control->End({.outcome = folder.status()});
  // A chief before this one has saved a later version, and not yet released this one.
  const bool is_superseded = absl::IsAlreadyExists(folder.status());
  const bool is_settled = folder.ok() || is_superseded;
  is_superseded ? log::Info(folder.status().message()) : RecordSave(version, folder);
  const bool is_last = version == job_->inputs.plan.max_steps;
  if (is_last && !is_settled) {
    const absl::Duration now = job_->now();
    if (last_save_.error.ok()) last_save_.failing_since = now;
    last_save_.error = folder.status();
    last_save_.pauses.OnRefusal(now);
  } else {
    if (is_last) last_save_ = {};
    snapshots_->Release(version);
  }
  if (!save_next_.empty() && last_save_.error.ok()) {
    const GlobalStep next = save_next_.front();
    save_next_.pop_front();
    Save(next);
  }
  job_->control->Notify(is_settled ? JobEvent::kMilestoneEnded : JobEvent::kSaveFailed);
}

// The last version could not be saved: again, for as long as patience lasts.
void MilestoneRunner::RetryLastSave() {
  const absl::Duration now = job_->now();
  const absl::Duration failing = now - last_save_.failing_since;
  if (failing >= job_->inputs.options.patience) {
    return job_->control->End(
        {.outcome = LastSaveFailed(failing, last_save_.error), .told = Told::kWorkers});
  }
  if (now >= last_save_.pauses.not_before()) Save(job_->inputs.plan.max_steps);
}

void MilestoneRunner::RecordSave(GlobalStep version, const absl::StatusOr<std::string>& folder) {
  RunRecord& record = job_->record;
  if (folder.ok()) {
    saved_ = std::max(saved_, version);
    record.checkpoint = *folder;
    record.save_error.clear();
    return log::Info(absl::StrCat("checkpoint ", *folder));
  }
  const std::string error = SaveFailedWarning(version, folder.status());
  // A save that is repeated says what is wrong once, and again when the stall is reported.
  if (std::exchange(record.save_error, error) != error) job_->Warn(error);
}

}  // namespace lockstep::chief
