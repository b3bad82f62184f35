#include "chief/service/job_run.h"

#include <cmath>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/membership/describe.h"
#include "chief/plan/messages.h"
#include "chief/service/summary.h"
#include "common/base/exit_code.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kStartReminder = absl::Seconds(5);
constexpr absl::Duration kStallReminder = absl::Seconds(10);
constexpr absl::Duration kProgressLine = absl::Seconds(3);
// For the workers to hear the end, and again for the ps.
constexpr absl::Duration kEndGrace = absl::Seconds(2);
constexpr absl::Duration kLeasePatience = absl::Seconds(30);
// Losses of longer jobs are recorded only when asked for.
constexpr int64_t kRecordedSteps = 10000;

std::vector<std::string> ShardNames(const ClusterSpec& cluster) {
  std::vector<std::string> names;
  for (size_t shard = 0; shard < cluster.ps.size(); ++shard) {
    names.push_back(absl::StrCat("ps ", shard, " (", cluster.ps[shard], ")"));
  }
  return names;
}

std::optional<Evaluator> MakeEvaluator(const JobPlan& plan) {
  if (plan.examples.test == 0) return std::nullopt;
  const int64_t workers = static_cast<int64_t>(plan.cluster.workers.size());
  return std::make_optional<Evaluator>(
      plan.examples.test, RangeSize(plan.examples.test, workers, plan.job.evaluation().batch()),
      kLeasePatience);
}

Milestones EvaluateAt(const JobPlan& plan) {
  if (plan.examples.test == 0) return {.end = plan.max_steps};
  return {.every_steps = plan.job.evaluation().every_steps(),
          .at_end = !plan.job.evaluation().not_at_end(),
          .end = plan.max_steps};
}

Milestones SaveAt(const JobPlan& plan) {
  if (plan.job.checkpoint().folder().empty()) return {.end = plan.max_steps};
  return {
      .every_steps = plan.job.checkpoint().every_steps(), .at_end = true, .end = plan.max_steps};
}

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
      started_(clock->Monotonic()),
      membership_(plan_.cluster.workers, options_.lease, started_),
      evaluator_(MakeEvaluator(plan_)),
      calls_(plan_.cluster.Canonical(), &membership_, evaluator_ ? &*evaluator_ : nullptr, clock,
             {.members_changed = [this] { OnMembersChanged(); },
              .admitted =
                  [this](const LiveMember& member) {
                    return views_.has_value() && views_->IsConfirmed(member);
                  },
              .waiting_for = [this] { return StartWaitsFor(); },
              .worker_failed = [this](absl::Status why) { Finish(std::move(why)); },
              .result_arrived = [this] { TakeEvaluations(); }}),
      probe_(plan_.cluster.ps, options_.fetch_status, executor),
      bring_up_({.shard_names = shard_names_,
                 .cluster = plan_.cluster.Canonical(),
                 .job = options_.job_id,
                 .epoch = plan_.epoch,
                 .variables = ToCreateVariables(plan_)},
                shards_, executor, clock,
                [this](absl::StatusOr<BroughtUp> shards) { OnBroughtUp(std::move(shards)); }),
      start_reminder_(kStartReminder, started_),
      stall_reminder_(kStallReminder, started_),
      progress_line_(kProgressLine, started_) {
  record_.start = plan_.start;
  record_.global_step = plan_.start;
}

void JobRun::Start() { bring_up_.Start(); }

void JobRun::Tick() {
  calls_.Tick();
  bring_up_.Tick();
  if (views_.has_value()) views_->Tick();
  if (steps_.has_value()) steps_->Tick();
  switch (phase_) {
    case Phase::kBringingUp:
    case Phase::kGathering:
      return WatchStart();
    case Phase::kTraining:
    case Phase::kCompleting:
      return WatchTraining();
    case Phase::kTelling:
    case Phase::kReleasing:
      return WatchEnd();
    case Phase::kOver:
      return;
  }
}

void JobRun::OnBroughtUp(absl::StatusOr<BroughtUp> shards) {
  if (phase_ != Phase::kBringingUp) return;
  if (!shards.ok()) return Finish(shards.status());
  brought_up_ = *std::move(shards);
  log::Info(absl::StrCat(shards_.size(), " ps are ready: ", plan_.placement.variables_size(),
                         " variables, at most ", plan_.balance.max_bytes, " bytes on one, ",
                         static_cast<int64_t>(plan_.balance.mean_bytes), " on average"));
  phase_ = Phase::kGathering;
  const Command& command = brought_up_.view.command();
  views_.emplace(
      brought_up_.view, shards_, executor_, clock_, [this] { OnConfirmed(); },
      [this](absl::Status status) { Finish(std::move(status)); });
  snapshots_.emplace(command, shards_, executor_);
  checkpointer_.emplace(
      CheckpointerOptions{.command = command,
                          .root = plan_.job.checkpoint().folder(),
                          .keep_last = static_cast<int>(plan_.job.checkpoint().keep_last()),
                          .manifest = ToManifest(plan_, Epoch(brought_up_.view.epoch()))},
      shards_, executor_);
  views_->SetMembers(membership_.Live());
}

void JobRun::OnMembersChanged() {
  if (views_.has_value()) views_->SetMembers(membership_.Live());
}

void JobRun::OnConfirmed() {
  if (phase_ == Phase::kGathering && views_->confirmed().size() >= plan_.needed_workers()) {
    BeginTraining();
  }
  calls_.AdmitParked();
}

std::string JobRun::StartWaitsFor() const {
  if (phase_ == Phase::kBringingUp) {
    const std::string missing = bring_up_.DescribeWaiting();
    return missing.empty() ? "the ps" : absl::StrCat("the ps: ", missing);
  }
  if (phase_ >= Phase::kTraining) return "the ps to accept the new member";
  const size_t here = membership_.Live().size();
  if (here >= plan_.needed_workers()) return "the ps to accept the workers";
  return absl::StrCat("enough workers: ", here, " of ", plan_.needed_workers(), " are there; ",
                      DescribeMissing(membership_, clock_->Monotonic()));
}

void JobRun::WatchStart() {
  const absl::Duration now = clock_->Monotonic();
  if (now - started_ >= options_.patience) {
    return Finish(absl::UnavailableError(
        absl::StrCat("the job could not start within ", Seconds(now - started_), ", waiting for ",
                     StartWaitsFor(),
                     ". Remedy: start what is missing, or correct its address in the cluster spec; "
                     "--start_timeout sets how long to wait")));
  }
  if (start_reminder_.Due(now)) {
    log::Warning(absl::StrCat("waiting for ", Seconds(now - started_), " for ", StartWaitsFor()));
  }
}

void JobRun::BeginTraining() {
  phase_ = Phase::kTraining;
  const absl::Duration now = clock_->Monotonic();
  const std::string missing = DescribeMissing(membership_, now);
  log::Info(absl::StrCat("training begins at step ", plan_.start.value(), " of ",
                         plan_.max_steps.value(), " with ", membership_.Live().size(), " workers, ",
                         plan_.required(), " to aggregate",
                         missing.empty() ? "" : absl::StrCat("; ", missing)));
  record_.began = record_.last_commit = now;
  record_.rate.Add(plan_.start, now);
  stall_reminder_.Progress(now);
  progress_line_.Progress(now);
  reported_step_ = plan_.start;

  StepLoopOptions options;
  options.command = brought_up_.view.command();
  options.start = plan_.start;
  options.end = plan_.max_steps;
  options.asynchronous = plan_.asynchronous();
  options.required = plan_.required();
  options.loss_variable = plan_.loss_variable;
  options.learning_rate = plan_.learning_rate;
  options.keep = [this](GlobalStep version) { return KeepAt(version); };
  options.patience = options_.patience;
  steps_.emplace(
      std::move(options), shards_, executor_, clock_,
      [this](const CommittedStep& step) { OnCommit(step); },
      [this](absl::Status status) { OnStepsEnded(std::move(status)); });

  RegisterTaskReply job = ToRegistration(plan_);
  job.set_job_id(brought_up_.view.command().job());
  job.set_term(brought_up_.view.command().term());
  job.set_epoch(brought_up_.view.epoch());
  calls_.Begin(std::move(job), [this] { return steps_->global_step(); });
  steps_->Start();
  on_ready_();
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
  if (options_.record_losses || plan_.max_steps.value() - plan_.start.value() <= kRecordedSteps) {
    record_.losses.push_back(step.loss.value_or(std::nanf("")));
  }
  record_.accepted = record_.stale = 0;
  for (const ShardProgress& shard : steps_->shards()) {
    record_.accepted += shard.accepted;
    record_.stale += shard.stale;
  }
  if (!std::isfinite(record_.loss) && !std::exchange(told_of_loss_, true)) {
    log::Warning(absl::StrCat("the loss of step ", step.global_step.value() - 1,
                              " is not a finite number. Remedy: lower the learning rate, check "
                              "the data"));
  }
  if (stall_reminder_.IsSilent(now)) log::Info("steps go on");
  stall_reminder_.Progress(now);
  pending_at_ps_.clear();

  const GlobalStep version = step.global_step;
  const bool evaluate = evaluate_at_.IsDue(version);
  const bool save = save_at_.IsDue(version);
  if (!evaluate && !save) return;
  const bool last = version == plan_.max_steps;
  int users = 0;
  if (evaluate && evaluator_->Begin(version, last)) {
    ++users;
    calls_.AssignLeases();
  } else if (evaluate) {
    log::Warning(absl::StrCat("no evaluation at step ", version.value(),
                              ": the one before is not done yet"));
  }
  const bool busy = checkpointer_->busy();
  if (save && (!busy || last)) ++users;
  snapshots_->Hold(version, users);
  if (save && !busy) {
    Save(version);
  } else if (save && last) {
    save_next_ = version;
  } else if (save) {
    log::Warning(absl::StrCat("no checkpoint at step ", version.value(),
                              ": the one before is not written yet"));
  }
}

void JobRun::TakeEvaluations() {
  stall_reminder_.Progress(clock_->Monotonic());
  while (const std::optional<EvaluationTotals> totals = evaluator_->TakeFinished()) {
    log::Info(EvaluationLine(plan_, *totals));
    record_.evaluations.push_back(*totals);
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
  stall_reminder_.Progress(clock_->Monotonic());
  snapshots_->Release(version);
  if (folder.ok()) {
    record_.checkpoint = *folder;
    log::Info(absl::StrCat("checkpoint ", *folder));
  } else {
    log::Warning(
        absl::StrCat("no checkpoint at step ", version.value(), ": ", folder.status().message()));
    if (version == plan_.max_steps) save_failure_ = folder.status();
  }
  if (save_next_.has_value()) Save(*std::exchange(save_next_, std::nullopt));
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
  if (phase_ != Phase::kCompleting || checkpointer_->busy() ||
      (evaluator_.has_value() && evaluator_->running() != nullptr)) {
    return;
  }
  Finish(save_failure_);
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
  probe_.Start([this](std::string pending) {
    pending_at_ps_ = std::move(pending);
    if (!pending_at_ps_.empty()) log::Warning(pending_at_ps_);
  });
}

void JobRun::Finish(absl::Status outcome) {
  if (phase_ >= Phase::kTelling) return;
  if (!outcome.ok()) log::Info(absl::StrCat("the job ends: ", outcome.message()));
  const bool had_begun = phase_ >= Phase::kTraining;
  phase_ = Phase::kTelling;
  outcome_ = std::move(outcome);
  if (steps_.has_value()) steps_->Stop();
  if (views_.has_value()) views_->Stop();
  calls_.End(outcome_);
  // A start that can be tried again leaves the ps to the next chief.
  const bool try_again = ExitCodeFor(outcome_) == ExitCode::kPeersLost && !had_begun;
  unreleased_ = try_again || brought_up_.view.command().job() == 0 ? 0 : shards_.size();
  end_deadline_ = clock_->Monotonic() + kEndGrace;
  WatchEnd();
}

void JobRun::WatchEnd() {
  const bool late = clock_->Monotonic() >= end_deadline_;
  if (phase_ == Phase::kTelling && (late || calls_.EverybodyKnows())) return ReleaseShards();
  if (phase_ == Phase::kReleasing && (late || unreleased_ == 0)) End();
}

void JobRun::ReleaseShards() {
  phase_ = Phase::kReleasing;
  end_deadline_ = clock_->Monotonic() + kEndGrace;
  if (unreleased_ == 0) return End();
  FinishRequest request;
  *request.mutable_command() = brought_up_.view.command();
  for (PsControl* shard : shards_) {
    shard->Finish(request,
                  On<FinishReply>(executor_, [this](const absl::StatusOr<FinishReply>& reply) {
                    if (!reply.ok()) log::Warning(reply.status().message());
                    --unreleased_;
                    WatchEnd();
                  }));
  }
}

void JobRun::End() {
  phase_ = Phase::kOver;
  on_end_(outcome_);
}

}  // namespace lockstep::chief
