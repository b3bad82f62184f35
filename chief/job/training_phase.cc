#include "chief/job/training_phase.h"

#include <algorithm>
#include <cmath>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/job/completing_phase.h"
#include "chief/job/job_rules.h"
#include "chief/job/log_lines.h"
#include "chief/job/milestone_runner.h"
#include "chief/job/status_reporter.h"
#include "chief/membership/describe.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kProgressLine = absl::Seconds(3);
// Losses of longer jobs are recorded only when asked for.
constexpr int64_t kRecordedSteps = 10000;

}  // namespace

TrainingPhase::TrainingPhase(JobState* job)
    : job_(job),
      steps_(
          MakeStepOptions(*job), job->inputs.shards, job->inputs.executor, job->inputs.clock,
          [this](const CommittedStep& step) { OnCommit(step); },
          [this](absl::Status status) { OnStepsEnded(std::move(status)); }),
      quorum_(QuorumRulesOf(job->inputs.plan), &job->membership, &*job->views),
      probe_(job->inputs.shards, job->inputs.executor),
      stall_reminder_(kStallReminder, job->now()),
      progress_line_(kProgressLine, job->now()),
      reported_step_(job->record.start) {
  if (!job->inputs.plan.is_replicated()) return;
  const bool shrinks = quorum_.on_shortage() == OnShortage::kShrink;
  group_ = std::make_unique<GroupKeeper>(job, shrinks ? 1 : job->inputs.plan.required());
}

void TrainingPhase::Start() {
  const absl::Duration now = job_->now();
  RunRecord& record = job_->record;
  log::Info(TrainingLine(job_->inputs.plan, record, job_->membership, now));
  job_->has_begun = true;
  record.began = record.last_commit = job_->real_clock()->Monotonic();
  record.rate.Add(record.start, record.began);
  job_->calls->Begin(MakeRegistration(*job_), [job = job_] { return job->record.global_step; });
  job_->milestones->TakeUp(job_->initialized.progress);
  steps_.Start();
  job_->inputs.on_ready();
  WatchQuorum();
}

void TrainingPhase::Stop() {
  stopped_ = true;
  steps_.Stop();
}

void TrainingPhase::OnEvent(JobEvent event) {
  switch (event) {
    case JobEvent::kMembersConfirmed:
      return WatchQuorum();
    case JobEvent::kMilestoneEnded:
      return stall_reminder_.Progress(job_->now());
    case JobEvent::kSaveFailed:
    case JobEvent::kEndKnown:
      return;
  }
}

void TrainingPhase::Tick() {
  steps_.Tick();
  if (!stopped_) WatchQuorum();
  if (!stopped_) Remind();
}

void TrainingPhase::OnCommit(const CommittedStep& step) {
  RecordStep(step);
  if (!std::isfinite(job_->record.loss) && !std::exchange(has_loss_warning_, true)) {
    job_->Warn(LossWarning(GlobalStep(step.global_step.value() - 1)));
  }
  const absl::Duration now = job_->now();
  if (stall_reminder_.IsSilent(now)) log::Info("steps go on");
  stall_reminder_.Progress(now);
  progress_.clear();

  const bool is_last = step.global_step == job_->inputs.plan.max_steps;
  const bool is_done = is_last && job_->initialized.progress.is_finished;
  if (!is_done) job_->milestones->Begin(step.global_step, is_last);
}

void TrainingPhase::RecordStep(const CommittedStep& step) {
  const JobInputs& inputs = job_->inputs;
  RunRecord& record = job_->record;
  record.global_step = step.global_step;
  record.loss = step.loss.value_or(record.loss);
  record.last_commit = job_->real_clock()->Monotonic();
  record.rate.Add(step.global_step, record.last_commit);
  const int64_t steps = inputs.plan.max_steps.value() - record.start.value();
  if (inputs.options.record_losses || steps <= kRecordedSteps) {
    record.losses.push_back(step.loss.value_or(std::nanf("")));
  }
  record.accepted = record.stale = 0;
  for (const StepProgress& shard : steps_.shards()) {
    record.accepted += shard.accepted;
    record.stale += shard.stale;
  }
}

void TrainingPhase::OnStepsEnded(absl::Status status) {
  if (stopped_) return;
  if (!status.ok()) return job_->control->End({.outcome = std::move(status)});
  LogProgress();
  job_->control->Enter(std::make_unique<CompletingPhase>(job_, std::move(group_)));
}

void TrainingPhase::LogProgress() const {
  log::Info(ProgressLine(job_->inputs.plan, job_->record, job_->real_clock()->Monotonic()));
}

void TrainingPhase::WatchQuorum() {
  if (group_ != nullptr) {
    absl::Status lost = group_->Follow();
    if (!lost.ok()) return job_->control->End({.outcome = std::move(lost)});
  }
  if (job_->replicas != nullptr) return WatchReplicas();
  if (!job_->inputs.plan.asynchronous()) return WatchSynchronousQuorum();
  job_->WatchShortage(quorum_.CountAble(job_->record.global_step) == 0);
}

void TrainingPhase::WatchSynchronousQuorum() {
  const bool was_short = quorum_.quorum().is_short;
  const Quorum quorum = quorum_.Evaluate(job_->record.global_step);
  const auto shortage = [this] { return job_->reporter->Shortage(job_->control->Describe()); };
  const bool shrinks = quorum_.on_shortage() == OnShortage::kShrink;
  if (quorum.must_end) {
    return job_->control->End(
        {.outcome = TooFewWorkers(shortage(), quorum_.on_shortage()), .save_first = true});
  }
  if (shrinks && quorum.required != job_->record.required) {
    const std::string missing = DescribeMissing(job_->membership, job_->now());
    job_->Warn(ShrinkWarning(quorum.required, job_->inputs.plan.required(), missing));
    job_->record.required = quorum.required;
    // Of a replicated job each shard says it, together with the members.
    if (group_ == nullptr) steps_.SetRequired(quorum.required);
  } else if (quorum.is_short && !was_short) {
    log::Warning(absl::StrCat("waiting for ", shortage()));
  }
  job_->WatchShortage(quorum.possible < job_->record.required);
}

// One view is announced at a time. The tokens of its first step are made when the step before
// closes, which is granted when every shard has the view: workers get no token of the step with
// other shares.
void TrainingPhase::FollowReplicas() {
  ElasticReplicas& replicas = *job_->replicas;
  replicas.SetConfirmed(job_->views->confirmed());
  if (!job_->views->HasConfirmedReplicas()) return;
  steps_.HoldFrom(std::nullopt);
  if (stopped_) return;
  const GlobalStep held = steps_.next_grant();
  // No step is left that could begin it, but those that are open need fewer gradients then.
  if (held.next() >= job_->inputs.plan.max_steps && !replicas.quorum().is_short) return;
  if (!replicas.Update(job_->record.global_step, held.next(), job_->now())) return;
  steps_.HoldFrom(held);
  job_->AnnounceReplicas();
}

void TrainingPhase::WatchReplicas() {
  FollowReplicas();
  if (stopped_) return;
  steps_.UpdateRequired();
  const bool was_short = job_->replicas->quorum().is_short;
  const Quorum quorum = job_->replicas->Evaluate(job_->record.global_step);
  job_->record.required = quorum.required;
  const auto shortage = [this] { return job_->reporter->Shortage(job_->control->Describe()); };
  if (quorum.must_end) {
    return job_->control->End(
        {.outcome = TooFewWorkers(shortage(), OnShortage::kAbort), .save_first = true});
  }
  if (quorum.is_short && !was_short) log::Warning(absl::StrCat("waiting for ", shortage()));
  // Lost ones are given up one by one, each after its own wait. Where none is left of those that
  // share the step at hand, nobody can make a gradient of it, however many others there are.
  const bool has_nobody = quorum.possible == 0;
  job_->WatchShortage(quorum.is_short && (has_nobody || !job_->replicas->HasEnough()));
}

void TrainingPhase::Remind() {
  const absl::Duration now = job_->now();
  if (job_->record.global_step != reported_step_ && progress_line_.Due(now)) {
    reported_step_ = job_->record.global_step;
    LogProgress();
  }
  if (!stall_reminder_.Due(now)) return;
  const JobFacts facts = job_->control->Describe();
  log::Warning(absl::StrCat("waiting for ", job_->reporter->WaitingFor(facts)));
  probe_.Start([this](const ProgressByShard& progress) { OnProgress(progress); });
}

void TrainingPhase::OnProgress(const ProgressByShard& progress) {
  if (stopped_) return;
  progress_ = progress;
  const std::string pending = job_->reporter->Pending(progress);
  if (!pending.empty()) log::Warning(pending);
  const bool reaches_all = std::ranges::all_of(
      steps_.shards(), [](const StepProgress& shard) { return shard.problem.ok(); });
  quorum_.AddProgress(job_->record.global_step, progress, reaches_all);
}

void TrainingPhase::Describe(JobFacts* facts) const {
  facts->stage = JobStage::kTraining;
  facts->silence = stall_reminder_.Silence(facts->now);
  facts->is_silent = stall_reminder_.IsSilent(facts->now);
  facts->quorum = job_->replicas != nullptr ? job_->replicas->quorum() : quorum_.quorum();
  facts->progress = progress_;
  for (size_t shard = 0; shard < facts->shards.size(); ++shard) {
    const StepProgress& progress = steps_.shards()[shard];
    facts->shards[shard].closed_steps = progress.step;
    facts->shards[shard].problem = progress.problem;
  }
}

}  // namespace lockstep::chief
