// A job run until it trains.
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/membership/describe.h"
#include "chief/plan/job_changes.h"
#include "chief/plan/messages.h"
#include "chief/service/job_run.h"
#include "chief/service/summary.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/earlier_runs.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

constexpr int kLeasesPerTermBits = 32;

}  // namespace

void JobRun::OnInitialized(absl::StatusOr<InitializedShards> shards) {
  if (phase_ != Phase::kInitializing) return;
  if (!shards.ok()) return Finish(shards.status());
  initialized_ = *std::move(shards);
  if (initialized_.start == StartPoint::kDone) return EndDoneJob();
  if (absl::Status status = NoteStart(); !status.ok()) return Finish(std::move(status));
  log::Info(absl::StrCat(
      CountText(shards_.size(), "ps is ready", "ps are ready"), ": ",
      CountText(static_cast<uint64_t>(plan_.placement.variables_size()), "variable"), ", at most ",
      BytesText(static_cast<uint64_t>(plan_.balance.max_bytes)), " on one, ",
      BytesText(static_cast<uint64_t>(plan_.balance.mean_bytes)), " on average"));
  phase_ = Phase::kGathering;
  Adopt();
  const Command& command = initialized_.view.command();
  views_.emplace(
      initialized_.view, shards_, executor_, clock_, [this] { OnConfirmed(); },
      [this](absl::Status status) { Finish(std::move(status)); });
  snapshots_.emplace(command, shards_, executor_, clock_);
  checkpointer_.emplace(MakeCheckpointerOptions(), shards_, executor_);
  views_->SetMembers(membership_.Live());
}

// A start of a job whose last step's checkpoint exists: the processes that are still there, or were
// started again, are told.
void JobRun::EndDoneJob() {
  log::Info(absl::StrCat("the job is done: ", plan_.restore_from, " is of step ",
                         WithCommas(plan_.start.value()), ", the job ends at step ",
                         WithCommas(plan_.max_steps.value())));
  record_.checkpoint = plan_.restore_from;
  // So that workers which are on their way here are expected.
  RegisterTaskReply job = ToRegistration(plan_);
  job.set_job_id(initialized_.view.command().job());
  calls_.Begin(std::move(job), [this] { return record_.global_step; });
  Finish(absl::OkStatus());
}

// Says from where the job starts, before anything trains. The checkpoints of earlier runs go out of
// the way of one that begins.
absl::Status JobRun::NoteStart() {
  const bool takes_over = initialized_.start == StartPoint::kTakeOver;
  if (!takes_over && !plan_.restore_from.empty()) {
    log::Info(absl::StrCat("restored from ", plan_.restore_from));
    record_.restored_from = plan_.restore_from;
  }
  const std::string changes = DescribeJobChanges(
      takes_over ? initialized_.job_before : plan_.restored_job,
      takes_over ? initialized_.model_before : plan_.restored_model, plan_.job, plan_.model);
  if (!changes.empty()) {
    Warn(absl::StrCat("the job has changed since the run that it continues: ", changes));
  }
  if (takes_over || plan_.mode != StartMode::kFresh || plan_.earlier.empty()) {
    return absl::OkStatus();
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string aside,
                            SetAsideCheckpoints(plan_.job.checkpoint().folder()));
  log::Info(absl::StrCat("moved the checkpoints of earlier runs to ", aside));
  return absl::OkStatus();
}

CheckpointerOptions JobRun::MakeCheckpointerOptions() const {
  return {.command = initialized_.view.command(),
          .root = plan_.job.checkpoint().folder(),
          .keep_last = static_cast<int>(plan_.job.checkpoint().keep_last()),
          .manifest = ToManifest(plan_, Epoch(initialized_.view.epoch()))};
}

StepLoopOptions JobRun::MakeStepOptions() const {
  StepLoopOptions options;
  options.command = initialized_.view.command();
  options.start = record_.start;
  options.end = plan_.max_steps;
  options.asynchronous = plan_.asynchronous();
  options.required = plan_.required();
  options.loss_variable = plan_.loss_variable;
  options.learning_rate = plan_.learning_rate;
  options.keep = [this](GlobalStep version) { return KeepAt(version); };
  options.patience = options_.patience;
  return options;
}

// What chiefs before this one have left.
void JobRun::Adopt() {
  const GlobalStep step = initialized_.progress.step;
  record_.start = record_.global_step = step;
  for (const EvaluatedVersion& evaluated : initialized_.progress.evaluations) {
    record_.evaluations.push_back(FromKept(evaluated));
  }
  for (const Member& member : initialized_.view.members()) {
    const LiveMember adopted{WorkerIndex(member.worker()), Incarnation(member.incarnation())};
    membership_.Adopt(adopted, clock_->Monotonic());
    membership_.NoteStart(adopted, step);
  }
  if (initialized_.start != StartPoint::kTakeOver) return;
  log::Info(
      absl::StrCat("taking over at step ", WithCommas(step.value()), ", with ",
                   CountText(static_cast<uint64_t>(initialized_.view.members_size()), "worker")));
}

// What is under way needs nobody in particular: what becomes of it is the quorum policy's.
uint32_t JobRun::NeededWorkers() const {
  if (initialized_.progress.is_finished) return 0;
  return initialized_.start == StartPoint::kTakeOver ? 1 : plan_.needed_workers();
}

void JobRun::OnMembersChanged() {
  if (views_.has_value()) views_->SetMembers(membership_.Live());
}

void JobRun::OnConfirmed() {
  if (phase_ == Phase::kGathering && views_->confirmed().size() >= NeededWorkers()) {
    BeginTraining();
  }
  calls_.AdmitParked();
  if (phase_ == Phase::kTraining) WatchQuorum();
}

std::string JobRun::StartWaitsFor() const {
  if (phase_ == Phase::kInitializing) {
    const std::string missing = initializer_.DescribeWaiting();
    return missing.empty() ? "the ps" : absl::StrCat("the ps: ", missing);
  }
  if (phase_ >= Phase::kTraining) return "the ps to accept the new member";
  const size_t here = membership_.Live().size();
  if (here >= NeededWorkers()) return "the ps to accept the workers";
  return absl::StrCat("enough workers: ", here, " of ", NeededWorkers(),
                      here == 1 ? " is there; " : " are there; ",
                      DescribeMissing(membership_, clock_->Monotonic()));
}

void JobRun::WatchStart() {
  const absl::Duration now = clock_->Monotonic();
  if (now - started_ >= options_.patience) {
    return Finish(absl::UnavailableError(
        absl::StrCat("the job could not start within ", DurationText(now - started_),
                     ", waiting for ", StartWaitsFor(),
                     ". Remedy: start what is missing, or correct its address in the cluster spec; "
                     "--start_timeout sets how long to wait")));
  }
  if (start_reminder_.Due(now)) {
    log::Warning(
        absl::StrCat("waiting for ", DurationText(now - started_), " for ", StartWaitsFor()));
  }
}

void JobRun::BeginTraining() {
  phase_ = Phase::kTraining;
  const absl::Duration now = clock_->Monotonic();
  const std::string missing = DescribeMissing(membership_, now);
  log::Info(absl::StrCat("training begins at step ", WithCommas(record_.start.value()), " of ",
                         WithCommas(plan_.max_steps.value()), " with ",
                         CountText(membership_.Live().size(), "worker"), ", ", plan_.required(),
                         " to aggregate", missing.empty() ? "" : absl::StrCat("; ", missing)));
  record_.began = record_.last_commit = now;
  record_.rate.Add(record_.start, now);
  stall_reminder_.Progress(now);
  progress_line_.Progress(now);
  reported_step_ = record_.start;

  steps_.emplace(
      MakeStepOptions(), shards_, executor_, clock_,
      [this](const CommittedStep& step) { OnCommit(step); },
      [this](absl::Status status) { OnStepsEnded(std::move(status)); });

  RegisterTaskReply job = ToRegistration(plan_);
  job.set_job_id(initialized_.view.command().job());
  job.set_term(initialized_.view.command().term());
  job.set_epoch(initialized_.view.epoch());
  // What a worker answers to a lease of an earlier chief is nothing to this one.
  const uint64_t leases_before = uint64_t{initialized_.view.command().term()} << kLeasesPerTermBits;
  if (evaluations_.has_value()) evaluations_->CountLeasesFrom(leases_before + 1);
  calls_.Begin(std::move(job), [this] { return record_.global_step; });
  TakeUpMilestones();
  steps_->Start();
  on_ready_();
}

}  // namespace lockstep::chief
