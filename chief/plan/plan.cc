#include "chief/plan/plan.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "chief/checkpoint/restorable.h"
#include "chief/plan/place.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/config/job.h"
#include "common/dataset/fit.h"
#include "common/fs/folder.h"
#include "common/log/log.h"
#include "common/model/index_columns.h"
#include "common/optimizer_proto/learning_rate.h"

namespace lockstep::chief {
namespace {

// Beyond it nobody means what the job says, and step numbers no longer fit a double.
constexpr double kMostSteps = 1e15;

std::string KindOf(const OptimizerDef& optimizer) {
  const auto* kind = OptimizerDef::descriptor()->FindFieldByNumber(optimizer.kind_case());
  return kind == nullptr ? "none" : kind->name();
}

const std::string& TrainingFile(const DataDef& data) {
  return data.has_idx() ? data.idx().train_images() : data.csv().train();
}

absl::StatusOr<GlobalStep> CountSteps(const JobDef& job, int64_t training_examples) {
  if (job.max_steps() > 0) return GlobalStep(job.max_steps());
  // An asynchronous step is of one worker.
  const int64_t batch =
      job.sync().has_asynchronous() ? job.towers() * job.batch_per_tower() : job.global_batch();
  const double steps = std::ceil(job.data_epochs() * static_cast<double>(training_examples) /
                                 static_cast<double>(batch));
  if (steps >= 1 && steps <= kMostSteps) return GlobalStep(static_cast<int64_t>(steps));
  return absl::InvalidArgumentError(
      absl::StrCat("data_epochs: ", job.data_epochs(), " are too many steps. Remedy: lower it"));
}

absl::Status CheckAveraged(const VariableAverages& averages, const ModelGraph& graph) {
  for (const std::string& name : averages.only()) {
    const auto found = std::ranges::find(graph.variables(), name, &ModelVariable::name);
    if (found != graph.variables().end() && found->trainable && !found->frozen) continue;
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer.variable_averages.only: the model trains no variable \"", name,
                     "\". Remedy: use a name such as \"", graph.variables().front().name, "\""));
  }
  return absl::OkStatus();
}

absl::Status PlanRestore(const RestoreChoice& restore, const std::string& job_file, JobPlan* plan) {
  const std::string& root =
      restore.folder.empty() ? plan->job.checkpoint().folder() : restore.folder;
  if (root.empty()) {
    return absl::InvalidArgumentError(
        absl::StrCat(job_file,
                     ": checkpoint.folder: it is missing, so there is nothing to restore "
                     "from. Remedy: give it, or --restore=FOLDER"));
  }
  std::vector<std::string> warnings;
  LOCKSTEP_ASSIGN_OR_RETURN(plan->restore_from, ResolveCheckpoint(root, &warnings));
  for (const std::string& warning : warnings) log::Warning(warning);
  LOCKSTEP_ASSIGN_OR_RETURN(const Manifest manifest, ReadManifest(plan->restore_from));
  LOCKSTEP_RETURN_IF_ERROR(
      Annotate(CheckRestorable(manifest, plan->placement, plan->optimizer), plan->restore_from));
  plan->start = GlobalStep(manifest.step);
  plan->epoch = Epoch(manifest.epoch + 1);
  if (plan->start < plan->max_steps) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat(job_file, ": the job ends at step ", plan->max_steps.value(),
                   " and the checkpoint ", plan->restore_from, " is of step ", manifest.step,
                   ". Remedy: raise max_steps or data_epochs, or start without --restore"));
}

}  // namespace

uint32_t JobPlan::required() const {
  return asynchronous() ? 1 : static_cast<uint32_t>(job.sync().replicas_to_aggregate());
}

uint32_t JobPlan::needed_workers() const {
  // Under FIFO one worker may take every token of a step.
  return job.sync().token_policy() == FIFO ? 1 : required();
}

bool JobPlan::every_replica_counts() const {
  const SyncDef& sync = job.sync();
  return !asynchronous() && sync.token_policy() == PER_REPLICA && sync.quorum_policy() != SHRINK &&
         required() == cluster.workers.size();
}

int64_t JobPlan::examples_per_step() const {
  return required() * job.towers() * job.batch_per_tower();
}

absl::StatusOr<JobPlan> MakePlan(const std::string& job_file, const ClusterSpec& cluster,
                                 const RestoreChoice& restore) {
  LOCKSTEP_ASSIGN_OR_RETURN(LoadedJob loaded, LoadJob(job_file));
  LOCKSTEP_RETURN_IF_ERROR(
      Annotate(ValidateJob(&loaded.job, static_cast<int64_t>(cluster.workers.size())), job_file));
  JobPlan plan{.cluster = cluster, .job = std::move(loaded.job), .model = std::move(loaded.model)};

  const absl::StatusOr<ModelGraph> graph = ModelGraph::Build(plan.model);
  if (!graph.ok()) return Annotate(graph.status(), plan.job.model());
  LOCKSTEP_RETURN_IF_ERROR(
      Annotate(CheckAveraged(plan.job.optimizer().variable_averages(), *graph), job_file));
  auto placement =
      Place(*graph, static_cast<uint32_t>(cluster.ps.size()), plan.job.max_part_bytes());
  if (!placement.ok()) return Annotate(placement.status(), job_file);
  plan.placement = *std::move(placement);
  plan.balance = BalanceOf(plan.placement);
  plan.loss_variable = plan.placement.variables().rbegin()->id();
  plan.is_classifier = graph->is_classifier();
  plan.optimizer = KindOf(plan.job.optimizer());
  plan.learning_rate = [schedule = ToSchedule(plan.job.optimizer().learning_rate())](
                           GlobalStep step) { return LearningRateAt(schedule, step); };

  LOCKSTEP_ASSIGN_OR_RETURN(plan.examples, MeasureDataset(plan.job.data()));
  LOCKSTEP_RETURN_IF_ERROR(CheckExamplesFit(TrainingFile(plan.job.data()),
                                            plan.examples.example_shape, graph->input_shape()));
  if (!IndexColumnsOf(*graph).empty()) {
    LOCKSTEP_RETURN_IF_ERROR(Annotate(CheckIndicesKept(plan.job.data()), job_file));
  }
  const absl::StatusOr<GlobalStep> steps = CountSteps(plan.job, plan.examples.train);
  if (!steps.ok()) return Annotate(steps.status(), job_file);
  plan.max_steps = *steps;

  plan.epoch = Epoch(1);
  if (restore.wanted) LOCKSTEP_RETURN_IF_ERROR(PlanRestore(restore, job_file, &plan));
  if (!plan.job.checkpoint().folder().empty()) {
    LOCKSTEP_RETURN_IF_ERROR(MakeFolders(plan.job.checkpoint().folder()));
  }
  return plan;
}

}  // namespace lockstep::chief
