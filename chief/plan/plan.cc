#include "chief/plan/plan.h"

#include <algorithm>
#include <filesystem>
#include <system_error>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "chief/checkpoint/divergence.h"
#include "chief/checkpoint/restorable.h"
#include "chief/plan/check_batches.h"
#include "chief/plan/csv_columns.h"
#include "chief/plan/finite_rate.h"
#include "chief/plan/losses.h"
#include "chief/plan/place.h"
#include "chief/plan/step_count.h"
#include "chief/plan/text_characters.h"
#include "common/base/annotate.h"
#include "common/base/remedy.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/earlier_runs.h"
#include "common/checkpoint/folder.h"
#include "common/checkpoint/history.h"
#include "common/checkpoint/owner.h"
#include "common/config/job.h"
#include "common/fs/absolute_path.h"
#include "common/fs/folder.h"
#include "common/fs/fs_error.h"
#include "common/fs/path.h"
#include "common/job/checked_job.h"
#include "common/log/log.h"

namespace lockstep::chief {
namespace {

// Of an epoch that is restored from this checkpoint. Epochs of other folders are not those of the
// job's own.
CheckpointOrigin OriginAt(const std::string& checkpoint, const Manifest& manifest,
                          const std::string& root) {
  std::error_code ignored;
  const bool is_own = std::filesystem::equivalent(FolderOf(checkpoint), root, ignored);
  return {.epoch = is_own ? manifest.epoch : 0, .step = manifest.step};
}

// A history of its own in the job's folder, whose checkpoints no other one has.
absl::Status TakeNextEpoch(uint64_t restored, JobPlan* plan) {
  LOCKSTEP_ASSIGN_OR_RETURN(const uint64_t highest, HighestEpoch(plan->job.checkpoint().folder()));
  plan->epoch = Epoch(std::max(highest, restored) + 1);
  return absl::OkStatus();
}

// NOT_FOUND: there is none.
absl::StatusOr<std::string> FindNewest(const std::string& root) {
  std::vector<std::string> warnings;
  absl::StatusOr<std::string> found = ResolveCheckpoint(root, &warnings);
  if (!found.ok()) {
    return AddRemedy(found.status(),
                     "--restore=FOLDER names one that a job wrote; --fresh begins anew");
  }
  for (const std::string& warning : warnings) log::Warning(warning);
  return found;
}

absl::Status Restore(const std::string& checkpoint, JobPlan* plan) {
  const absl::StatusOr<Manifest> read = ReadManifest(checkpoint);
  if (absl::IsNotFound(read.status())) return CheckpointGoneError(checkpoint);
  LOCKSTEP_RETURN_IF_ERROR(read.status());
  const Manifest& manifest = *read;
  LOCKSTEP_RETURN_IF_ERROR(
      Annotate(CheckRestorable(manifest, plan->placement, plan->optimizer), checkpoint));
  plan->restore_from = checkpoint;
  plan->start = GlobalStep(manifest.step);
  plan->origin = OriginAt(plan->restore_from, manifest, plan->job.checkpoint().folder());
  plan->restored_job = manifest.job;
  plan->restored_model = manifest.model;
  plan->diverged = DescribeDivergence(plan->restore_from, manifest);
  return TakeNextEpoch(manifest.epoch, plan);
}

absl::Status RestoreFrom(const std::string& root, JobPlan* plan) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string found, FindNewest(root));
  return Restore(found, plan);
}

absl::Status PlanRestore(const std::string& folder, const std::string& job_file, JobPlan* plan) {
  const std::string root = folder.empty() ? plan->job.checkpoint().folder() : AbsolutePath(folder);
  if (root.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(job_file,
                     ": checkpoint.folder: it is missing, so there is nothing to restore "
                     "from. Remedy: give it, or --restore=FOLDER"));
  }
  LOCKSTEP_RETURN_IF_ERROR(RestoreFrom(root, plan));
  if (!plan->is_done()) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(job_file, ": the job ends at step ", plan->max_steps.value(),
                   " and the checkpoint ", plan->restore_from, " is of step ", plan->start.value(),
                   ". Remedy: raise max_steps or data_epochs, or start with --fresh"));
}

// Everything broken is an error: beginning anew would bury what may be mended.
absl::Status PlanResume(const std::string& folder, JobPlan* plan) {
  if (!folder.empty()) return RestoreFrom(folder, plan);
  const std::string& root = plan->job.checkpoint().folder();
  if (root.empty()) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string source, FindSource(root));
  if (!source.empty()) return RestoreFrom(source, plan);
  const absl::StatusOr<std::string> found = FindNewest(root);
  if (absl::IsNotFound(found.status())) return absl::OkStatus();
  return found.ok() ? Restore(*found, plan) : found.status();
}

// Where the job starts is planned when this chief takes command.
absl::Status PlanSuccession(JobPlan* plan) {
  const std::string& root = plan->job.checkpoint().folder();
  if (root.empty()) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(plan->finished, FindLastCheckpoint(root, plan->max_steps));
  return absl::OkStatus();
}

absl::Status FindStart(const StartChoice& start, const std::string& job_file, JobPlan* plan) {
  plan->mode = start.mode;
  LOCKSTEP_RETURN_IF_ERROR(TakeNextEpoch(0, plan));
  switch (start.mode) {
    case StartMode::kRestore:
      return PlanRestore(start.folder, job_file, plan);
    case StartMode::kResume:
      return PlanResume(start.folder, plan);
    case StartMode::kSucceed:
      return PlanSuccession(plan);
    case StartMode::kBegin:
    case StartMode::kFresh:
      break;
  }
  const std::string& root = plan->job.checkpoint().folder();
  if (root.empty()) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(plan->earlier, FindCheckpoint(root));
  return absl::OkStatus();
}

absl::Status PlanStart(const StartChoice& start, const std::string& job_file, JobPlan* plan) {
  LOCKSTEP_RETURN_IF_ERROR(FindStart(start, job_file, plan));
  return SetCharacters({.occurring = plan->examples.characters,
                        .named = plan->named_characters,
                        .job_before = plan->restored_job},
                       &plan->job);
}

// The checkpoint that the owner's epoch began from; empty: it began with the initial values, or
// `root` says so itself, now that it has its owner. Before that nothing of the epoch was saved.
absl::StatusOr<std::string> FindBeginning(const std::string& root, const FolderOwner& owed) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<FolderOwner> owner, ReadOwner(root));
  if (owner.has_value() && owner->epoch >= owed.epoch) return "";
  return owed.origin.epoch == 0 ? owed.source : CheckpointFolder(root, owed.origin.step);
}

// Whether what `root` holds is of runs before the one that goes back, which began with the initial
// values and has saved nothing.
absl::StatusOr<bool> HasEarlierRunsOnly(const std::string& root,
                                        const std::optional<FolderOwner>& owed) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool has_folder, FindFolder(root));
  if (!has_folder) return false;
  LOCKSTEP_ASSIGN_OR_RETURN(std::optional<FolderOwner> owner, ReadOwner(root));
  if (owed.has_value() && (!owner.has_value() || owner->epoch < owed->epoch)) owner = owed;
  if (!owner.has_value() || !owner->is_fresh) return false;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListCheckpoints(root));
  bool has_earlier = false;
  bool has_damaged = false;
  for (const int64_t step : steps) {
    const absl::StatusOr<Manifest> manifest = ReadManifest(CheckpointFolder(root, step));
    if (IsStorageFailure(manifest.status())) return manifest.status();
    if (manifest.ok() && manifest->epoch >= owner->epoch) return false;
    has_earlier |= manifest.ok();
    has_damaged |= !manifest.ok() && !absl::IsNotFound(manifest.status());
  }
  // Nothing is saved before all earlier ones are set aside. Where none of those is left, one that
  // is damaged may be the run's own, and may be mended.
  return has_earlier || !has_damaged;
}

}  // namespace

absl::StatusOr<std::string> FindLastCheckpoint(const std::string& root, GlobalStep last) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool has_folder, FindFolder(root));
  if (!has_folder) return "";
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<FolderOwner> owner, ReadOwner(root));
  // Of one that is being written or removed nothing is said yet.
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<HistoryPoint> points, ReadHistoryPoints(root));
  const bool has_saved = !owner.has_value() || HasSavedSince(points, owner->epoch);
  // Without its origin nothing of an epoch that has saved nothing is there.
  const std::vector<int64_t> steps =
      has_saved ? StepsThatGoOn(points, std::nullopt)
                : StepsUpTo(points, owner->origin.epoch, owner->origin.step);
  const bool is_last = !steps.empty() && GlobalStep(steps.front()) >= last;
  return is_last ? CheckpointFolder(root, steps.front()) : "";
}

absl::StatusOr<JobPlan> GoBack(JobPlan plan, std::string lost,
                               const std::optional<FolderOwner>& owed) {
  const std::string& root = plan.job.checkpoint().folder();
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_fresh, HasEarlierRunsOnly(root, owed));
  StartChoice start{.mode = is_fresh ? StartMode::kFresh : StartMode::kResume};
  if (owed.has_value()) {
    LOCKSTEP_ASSIGN_OR_RETURN(start.folder, FindBeginning(root, *owed));
  }
  plan.start = GlobalStep(0);
  plan.origin = {};
  plan.restore_from.clear();
  plan.restored_job.clear();
  plan.restored_model.clear();
  plan.diverged.clear();
  plan.earlier.clear();
  plan.finished.clear();
  plan.lost = std::move(lost);
  LOCKSTEP_RETURN_IF_ERROR(PlanStart(start, "", &plan));
  plan.mode = StartMode::kResume;
  if (owed.has_value()) plan.epoch = std::max(plan.epoch, Epoch(owed->epoch + 1));
  return plan;
}

uint32_t JobPlan::required() const {
  if (asynchronous()) return 1;
  if (is_elastic() && !job.sync().has_replicas_to_aggregate()) {
    return static_cast<uint32_t>(cluster.workers.size());
  }
  return static_cast<uint32_t>(job.sync().replicas_to_aggregate());
}

uint32_t JobPlan::needed_workers() const {
  // The others join when they come.
  if (is_elastic()) return static_cast<uint32_t>(job.sync().min_replicas());
  // Under FIFO one worker may take every token of a step.
  return job.sync().token_policy() == FIFO ? 1 : required();
}

bool JobPlan::every_replica_counts() const {
  const SyncDef& sync = job.sync();
  return !asynchronous() && !is_elastic() && sync.token_policy() == PER_REPLICA &&
         sync.quorum_policy() != SHRINK && required() == cluster.workers.size();
}

int64_t JobPlan::examples_per_step() const {
  if (is_elastic()) return job.global_batch();
  return asynchronous() ? job.batch_per_tower() : required() * job.towers() * job.batch_per_tower();
}

absl::StatusOr<JobPlan> MakePlan(const std::string& job_file, const ClusterSpec& cluster,
                                 const StartChoice& start) {
  LOCKSTEP_ASSIGN_OR_RETURN(LoadedJob loaded, LoadJob(job_file));
  LOCKSTEP_ASSIGN_OR_RETURN(CheckedJob checked,
                            CheckedJob::Create(job_file, std::move(loaded),
                                               static_cast<int64_t>(cluster.workers.size())));
  JobPlan plan{.cluster = cluster,
               .job = std::move(checked.job),
               .model = std::move(checked.model),
               .examples = checked.examples};
  LOCKSTEP_RETURN_IF_ERROR(SetColumns(plan.examples.columns, &plan.job));
  plan.named_characters = plan.job.data().text().characters();
  if (plan.job.sync().ps_replicas() > 0 && cluster.ps.size() < 2) {
    return absl::InvalidArgumentError(absl::StrCat(
        job_file,
        ": sync.ps_replicas: a copy at the only ps would be lost with it. Remedy: add a "
        "ps to the cluster spec (for lockstep up: local.ps), or remove it"));
  }
  auto placement = Place(checked.graph, static_cast<uint32_t>(cluster.ps.size()),
                         plan.job.max_part_bytes(), plan.job.strategy().parameter_server());
  if (!placement.ok()) return Annotate(placement.status(), job_file);
  plan.placement = *std::move(placement);
  if (plan.is_replicated()) LeaveToWorkers(&plan.placement);
  SetTurns(plan.job, checked.graph, checked.losses, &plan.placement);
  plan.balance = BalanceOf(plan.placement);
  plan.loss_variable = plan.placement.variables().rbegin()->id();
  plan.is_classifier = checked.graph.is_classifier();
  plan.labels_per_example = checked.graph.labels_per_example();
  plan.optimizer = OptimizerKindOf(plan.job);
  plan.learning_rate = LearningRateOf(plan.job);

  const absl::StatusOr<GlobalStep> steps =
      CountSteps(plan.job, plan.examples, static_cast<int64_t>(cluster.workers.size()));
  if (!steps.ok()) return Annotate(steps.status(), job_file);
  plan.max_steps = *steps;
  LOCKSTEP_RETURN_IF_ERROR(
      Annotate(CheckBatches(plan.job, plan.examples, static_cast<int64_t>(cluster.workers.size()),
                            plan.max_steps),
               job_file));
  LOCKSTEP_RETURN_IF_ERROR(Annotate(CheckFiniteRate(plan.job, plan.max_steps), job_file));

  LOCKSTEP_RETURN_IF_ERROR(PlanStart(start, job_file, &plan));
  LOCKSTEP_RETURN_IF_ERROR(MakeCheckpointFolder(job_file, plan.job));
  return plan;
}

}  // namespace lockstep::chief
