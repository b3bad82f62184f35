#include "chief/job/starting_phase.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/job/job_rules.h"
#include "chief/job/log_lines.h"
#include "chief/job/milestone_runner.h"
#include "chief/job/status_reporter.h"
#include "chief/job/summary.h"
#include "chief/job/training_phase.h"
#include "chief/plan/job_changes.h"
#include "chief/plan/messages.h"
#include "chief/plan/text_characters.h"
#include "chief/plan/zero_rate.h"
#include "common/base/exit_code.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/earlier_runs.h"
#include "common/fs/fs_error.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

constexpr absl::Duration kReminder = absl::Seconds(5);
constexpr absl::Duration kClaimPause = absl::Seconds(1);
// For workers to find a chief at another address: each call to one that was stopped takes 2 s.
constexpr absl::Duration kFollowing = absl::Seconds(5);

RecoverySpec MakeRecoverySpec(const JobInputs& inputs) {
  const JobPlan& plan = inputs.plan;
  return {.shard_names = inputs.shard_names,
          .job = inputs.options.job_id,
          .chief = inputs.options.incarnation,
          .chief_index = inputs.options.chief_index,
          .lease = inputs.options.lease,
          .epoch = plan.epoch,
          .is_elastic = plan.is_elastic(),
          .variables = ToCreateVariables(plan),
          .end = plan.max_steps,
          .mode = plan.mode,
          .retries_creation = inputs.options.run > 1,
          .earlier = plan.earlier};
}

// Who owns the checkpoint folder with this view.
FolderOwner OwnerOf(const JobState& job, const SetViewRequest& view) {
  const Command& command = view.command();
  return {.job = command.job(),
          .epoch = view.epoch(),
          .term = command.term(),
          .chief = command.chief(),
          .host = job.inputs.options.host,
          .pid = static_cast<uint32_t>(::getpid())};
}

// The view has begun it.
void KeepLease(const SetViewRequest& view, JobState* job) {
  if (job->lease != nullptr) return job->lease->SetCommand(view.command());
  RenewLeaseRequest renewal;
  *renewal.mutable_command() = view.command();
  renewal.set_lease_ms(view.lease_ms());
  renewal.set_chief_index(view.chief_index());
  const JobOptions& options = job->inputs.options;
  job->lease = std::make_shared<LeaseKeeper>(
      std::move(renewal), job->inputs.shards[kStepShard],
      options.lease_executor != nullptr ? options.lease_executor : job->inputs.executor,
      job->real_clock());
}

// On the disk's thread.
absl::Status SetAsideEarlierRuns(const std::string& folder, const FolderClaim* claim) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string aside,
                            SetAsideCheckpoints(folder, [claim] { return claim->Check(); }));
  log::Info(absl::StrCat("moved the checkpoints of earlier runs to ", aside));
  return absl::OkStatus();
}

// On the disk's thread. NOT_FOUND: the epoch has no checkpoint of this step.
absl::Status CheckIsSaved(const std::string& folder, GlobalStep step, uint64_t epoch) {
  const std::string path = CheckpointFolder(folder, step.value());
  LOCKSTEP_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(path));
  if (manifest.epoch == epoch) return absl::OkStatus();
  return absl::NotFoundError(absl::StrCat(path, ": expected a checkpoint of epoch ", epoch,
                                          ", got one of epoch ", manifest.epoch));
}

}  // namespace

StartingPhase::StartingPhase(JobState* job)
    : job_(job),
      started_(job->now()),
      initializer_(
          MakeRecoverySpec(job->inputs), MakeHooks(), job->inputs.shards, job->inputs.executor,
          job->inputs.clock, job->real_clock(),
          [this](absl::StatusOr<InitializedShards> shards) { OnInitialized(std::move(shards)); }),
      reminder_(kReminder, started_),
      disk_(job->inputs.executor, job->inputs.options.waits_for_disk ||
                                      job->inputs.plan.job.checkpoint().folder().empty()),
      last_checkpoint_(job->inputs, started_) {}

void StartingPhase::Start() {
  if (job_->lease != nullptr) initializer_.FollowCommand(job_->lease->command());
  initializer_.Start();
}

CommandHooks StartingPhase::MakeHooks() {
  return {.may_take = [job = job_](const SetViewRequest& view, bool follows_own) -> absl::Status {
            if (job->lease != nullptr) {
              LOCKSTEP_RETURN_IF_ERROR(job->lease->MayAnnounce(view.command(), follows_own));
            }
            const auto& may_take = job->inputs.options.may_take;
            if (may_take != nullptr && !follows_own) {
              LOCKSTEP_RETURN_IF_ERROR(may_take(view.command().term()));
            }
            job->announced = view.command();
            return absl::OkStatus();
          },
          .before =
              [this](const SetViewRequest& view, StatusCallback done) {
                ClaimOnDisk([claim = job_->claim.get(),
                             owner = OwnerOf(*job_, view)] { return claim->Enter(owner); },
                            std::move(done));
              },
          .accepted =
              [this](const SetViewRequest& view, StartPoint start, StatusCallback done) {
                KeepLease(view, job_);
                const auto& on_taken = job_->inputs.options.on_taken;
                if (on_taken != nullptr) on_taken(view.command().term());
                FolderOwner owner = OwnerOf(*job_, view);
                // Of a job that goes on the chief before has written the origin, unless its disk
                // was full.
                if (start != StartPoint::kTakeOver) {
                  owner.origin = job_->inputs.plan.origin;
                  owner.source = job_->inputs.plan.source();
                  owner.is_fresh = !job_->inputs.plan.earlier.empty();
                }
                ClaimOnDisk([claim = job_->claim.get(),
                             owner = std::move(owner)] { return claim->Take(owner); },
                            std::move(done));
              },
          .taken_over =
              [this](const std::string& job_before, CreateVariablesRequest* variables) {
                JobPlan& plan = job_->inputs.plan;
                const absl::Status kept = SetCharacters({.occurring = plan.examples.characters,
                                                         .named = plan.named_characters,
                                                         .job_before = job_before},
                                                        &plan.job);
                variables->set_job_text(ToCreateVariables(plan).job_text());
                return kept;
              }};
}

void StartingPhase::RunOnDisk(absl::AnyInvocable<absl::Status()> work, StatusCallback done) {
  is_disk_busy_ = true;
  disk_.Run(std::move(work), [this, done = std::move(done)](absl::Status status) mutable {
    is_disk_busy_ = false;
    for (std::string& warning : job_->claim->TakeWarnings()) job_->Warn(std::move(warning));
    if (!stopped_) return done(std::move(status));
    // Another chief may have the folder.
    if (job_->lease == nullptr) job_->claim->ReleaseLock();
  });
}

void StartingPhase::ClaimOnDisk(std::function<absl::Status()> work, StatusCallback done) {
  RunOnDisk(work, [this, work, done = std::move(done)](absl::Status status) mutable {
    const bool again = job_->inputs.options.run > 1 && IsStorageFailure(status);
    claim_failure_ = again ? status : absl::OkStatus();
    if (!again) return done(std::move(status));
    failed_claim_ = FailedClaim{job_->now() + kClaimPause, std::move(work), std::move(done)};
  });
}

void StartingPhase::Stop() {
  stopped_ = true;
  initializer_.Stop();
  if (is_disk_busy_) job_->claim->Abandon();
}

void StartingPhase::OnInitialized(absl::StatusOr<InitializedShards> shards) {
  if (stopped_) return;
  if (!shards.ok()) {
    // Shards that have trained may go on with the next chief.
    return job_->control->End(
        {.outcome = shards.status(),
         .told = initializer_.takes_over() ? Told::kNobody : Told::kEverybody});
  }
  job_->initialized = *std::move(shards);
  if (job_->initialized.start == StartPoint::kPlanAfresh) {
    return PlanAfresh("the ps have no variables that have trained together");
  }
  if (job_->initialized.start == StartPoint::kDone) return EndDoneJob();
  RecordStart();
  if (MayHaveLostLastVersion()) {
    return RunOnDisk(
        [folder = job_->inputs.plan.job.checkpoint().folder(), step = job_->inputs.plan.max_steps,
         epoch = job_->initialized.view.epoch()] { return CheckIsSaved(folder, step, epoch); },
        [this](const absl::Status& found) { JudgeEnd(found.ok()); });
  }
  if (!BuriesEarlierRuns()) return AwaitWorkers();
  RunOnDisk([folder = job_->inputs.plan.job.checkpoint().folder(),
             claim = job_->claim.get()] { return SetAsideEarlierRuns(folder, claim); },
            [this](const absl::Status& status) {
              status.ok() ? AwaitWorkers() : job_->control->End({.outcome = status});
            });
}

void StartingPhase::FindEnd() {
  if (job_->inputs.plan.mode != StartMode::kSucceed || !initializer_.MayBeDone()) return;
  last_checkpoint_.Tick(job_->now(), [this] {
    if (initializer_.MayBeDone()) PlanAfresh("the job is done");
  });
}

void StartingPhase::PlanAfresh(const std::string& why) {
  Stop();
  job_->initialized.start = StartPoint::kPlanAfresh;
  job_->inputs.on_end(absl::UnavailableError(why + ": the start is planned afresh"));
}

void StartingPhase::AwaitWorkers() {
  log::Info(ShardsReadyLine(job_->inputs.plan));
  Adopt();
  job_->calls->KnowMembers();
  job_->views.emplace(
      job_->initialized.view, job_->inputs.shards, job_->inputs.shard_names, job_->inputs.executor,
      job_->inputs.clock, job_->real_clock(),
      [job = job_] {
        job->calls->AdmitParked();
        job->control->Notify(JobEvent::kMembersConfirmed);
      },
      [job = job_](absl::Status status) { job->control->End({.outcome = std::move(status)}); });
  job_->milestones->Start();
  job_->views->SetMembers(job_->membership.Live());
  // After the members, which are announced with them.
  if (!job_->record.replica_views.empty()) {
    job_->views->SetReplicaViews(job_->initialized.replica_views);
  }
}

// A start of a job whose last step's checkpoint exists: the processes that are still there, or were
// started again, are told.
void StartingPhase::EndDoneJob() {
  log::Info(AlreadyDoneLine(job_->inputs.plan));
  job_->record.checkpoint = job_->inputs.plan.restore_from;
  job_->calls->KnowMembers();
  // So that workers which are on their way here are expected.
  job_->calls->Begin(MakeRegistration(*job_), [job = job_] { return job->record.global_step; });
  job_->control->End({.outcome = absl::OkStatus()});
}

// Says from where the job starts, before anything trains.
void StartingPhase::RecordStart() {
  const JobPlan& plan = job_->inputs.plan;
  const InitializedShards& shards = job_->initialized;
  const bool takes_over = shards.start == StartPoint::kTakeOver;
  if (!plan.lost.empty()) job_->Warn(GoneBackWarning(plan, takes_over));
  if (!takes_over && !plan.restore_from.empty()) {
    log::Info(absl::StrCat("restored from ", plan.restore_from));
    job_->record.restored_from = plan.restore_from;
    if (!plan.diverged.empty()) job_->Warn(DivergedStartWarning(plan));
  }
  const std::string changes = DescribeJobChanges(
      takes_over ? shards.job_before : plan.restored_job,
      takes_over ? shards.model_before : plan.restored_model, plan.job, plan.model);
  if (!changes.empty()) {
    job_->Warn(absl::StrCat("the job has changed since the run that it continues: ", changes));
  }
  const std::string zero_rate =
      ZeroRateWarning(plan.job, takes_over ? shards.progress.step : plan.start, plan.max_steps);
  if (!zero_rate.empty()) job_->Warn(zero_rate);
}

bool StartingPhase::BuriesEarlierRuns() const {
  return job_->initialized.start != StartPoint::kTakeOver && !job_->inputs.plan.earlier.empty();
}

bool StartingPhase::MayHaveLostLastVersion() const {
  return job_->initialized.progress.has_made_all_steps &&
         job_->inputs.plan.job.sync().ps_replicas() > 0;
}

// A version that was released has its checkpoint, and the step shard what its evaluation found. One
// that no shard keeps, and that has no checkpoint, went with the ps that kept it: the shards are at
// it, so it can still be saved.
void StartingPhase::JudgeEnd(bool is_saved) {
  const JobPlan& plan = job_->inputs.plan;
  JobProgress& progress = job_->initialized.progress;
  const bool save = SaveAt(plan).IsDue(plan.max_steps);
  const bool evaluate = EvaluateAt(plan).IsDue(plan.max_steps);
  const bool is_evaluated =
      std::ranges::any_of(progress.evaluations, [&plan](const EvaluatedVersion& evaluated) {
        return evaluated.version() == plan.max_steps.value();
      });
  if (save && !is_saved) {
    progress.is_finished = false;
  } else if (!evaluate || is_evaluated) {
    progress.is_finished = true;
  }
  AwaitWorkers();
}

// What chiefs before this one have left.
void StartingPhase::Adopt() {
  const InitializedShards& shards = job_->initialized;
  const GlobalStep step = shards.progress.step;
  const bool is_only_chief = job_->inputs.plan.cluster.Count(Role::kChief) == 1;
  const absl::Duration grace =
      is_only_chief ? absl::ZeroDuration() : job_->inputs.options.lease + kFollowing;
  job_->record.start = job_->record.global_step = step;
  for (const EvaluatedVersion& evaluated : shards.progress.evaluations) {
    job_->record.AddEvaluation(FromKept(evaluated));
  }
  for (const Member& member : shards.view.members()) {
    const LiveMember adopted{WorkerIndex(member.worker()), Incarnation(member.incarnation())};
    if (job_->replicas != nullptr && adopted.worker.value() >= job_->membership.members().size()) {
      job_->membership.SetAddress(adopted.worker, "not in this chief's cluster spec");
    }
    job_->membership.Adopt(adopted, job_->now(), grace, job_->inputs.options.callers);
    job_->membership.NoteStart(adopted, step);
  }
  if (job_->replicas != nullptr) {
    job_->replicas->Adopt(shards.replica_views);
    job_->record.replica_views = shards.replica_views.views();
  }
  if (shards.start != StartPoint::kTakeOver) return;
  log::Info(TakeoverLine(step, static_cast<size_t>(shards.view.members_size())));
}

// What is under way needs nobody in particular: what becomes of it is the quorum policy's.
uint32_t StartingPhase::NeededWorkers() const {
  if (job_->initialized.progress.is_finished) return 0;
  return job_->initialized.start == StartPoint::kTakeOver ? 1 : job_->inputs.plan.needed_workers();
}

void StartingPhase::OnEvent(JobEvent event) {
  if (event != JobEvent::kMembersConfirmed) return;
  if (job_->views->confirmed().size() < NeededWorkers()) return;
  if (job_->replicas != nullptr && !HasReplicas()) return;
  job_->control->Enter(std::make_unique<TrainingPhase>(job_));
}

bool StartingPhase::HasReplicas() {
  ElasticReplicas& replicas = *job_->replicas;
  if (!replicas.views().empty()) return job_->views->HasConfirmedReplicas();
  replicas.SetConfirmed(job_->views->confirmed());
  if (!replicas.Begin(job_->record.start)) return false;
  job_->AnnounceReplicas();
  return false;
}

void StartingPhase::Tick() {
  initializer_.Tick();
  FindEnd();
  if (stopped_) return;
  const absl::Duration now = job_->now();
  if (failed_claim_.has_value() && now >= failed_claim_->next) {
    FailedClaim claim = *std::exchange(failed_claim_, std::nullopt);
    return ClaimOnDisk(std::move(claim.work), std::move(claim.done));
  }
  const absl::Duration waited = now - started_;
  const auto waiting_for = [this] {
    return job_->reporter->AdmissionWaitsFor(job_->control->Describe());
  };
  if (waited >= job_->inputs.options.patience) {
    absl::Status outcome = StartTimedOut(waited, waiting_for());
    const absl::Status& unread =
        claim_failure_.ok() ? initializer_.creation_failure() : claim_failure_;
    if (!job_->views.has_value() && !unread.ok()) {
      outcome = WithExitCode(std::move(outcome), ExitCodeFor(unread));
    }
    return job_->control->End({.outcome = std::move(outcome)});
  }
  if (reminder_.Due(now)) {
    log::Warning(absl::StrCat("waiting for ", DurationText(waited), " for ", waiting_for()));
  }
}

void StartingPhase::Describe(JobFacts* facts) const {
  const InitializedShards& initialized = job_->initialized;
  facts->stage = job_->views.has_value() ? JobStage::kGathering : JobStage::kInitializing;
  facts->uninitialized = initializer_.DescribeWaiting();
  facts->is_disk_awaited = (is_disk_busy_ || !claim_failure_.ok()) && !stopped_;
  facts->disk_problem = std::string(claim_failure_.message());
  facts->needed_workers = NeededWorkers();
  for (size_t shard = 0; shard < facts->shards.size(); ++shard) {
    ShardFacts& told = facts->shards[shard];
    told.problem.status = initializer_.Problem(shard);
    told.has_variables = !initialized.bytes.empty();
    if (told.has_variables) told.bytes = initialized.bytes[shard];
  }
}

}  // namespace lockstep::chief
