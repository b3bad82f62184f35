#include "common/job/checked_job.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/nearest.h"
#include "common/base/remedy.h"
#include "common/base/status_macros.h"
#include "common/config/load_schedule_of.h"
#include "common/dataset/example_rules.h"
#include "common/dataset/fit.h"
#include "common/fs/folder.h"
#include "common/job/example_spec.h"
#include "common/job/loss_checks.h"
#include "common/model/check_initializers.h"
#include "common/reduction/tower_names.h"

namespace lockstep {
namespace {

absl::Status CheckAveraged(const VariableAverages& averages, const ModelGraph& graph) {
  std::vector<std::string> trained;
  for (const ModelVariable& variable : graph.variables()) {
    if (variable.trainable && !variable.frozen) trained.push_back(variable.name);
  }
  for (const std::string& name : averages.only()) {
    if (std::ranges::find(trained, name) != trained.end()) continue;
    const std::vector<std::string> known = NearestFirst(name, trained);
    return absl::InvalidArgumentError(absl::StrCat(
        "optimizer.variable_averages.only: the model trains no variable \"",
        absl::CHexEscape(name.substr(0, 100)), "\". Remedy: ",
        known.empty() ? "remove it" : absl::StrCat("use a name such as \"", known.front(), "\"")));
  }
  return absl::OkStatus();
}

absl::Status CheckReplicated(const JobDef& job, const ModelGraph& graph) {
  if (!job.strategy().has_replicated()) return absl::OkStatus();
  for (const ModelVariable& variable : graph.variables()) {
    const bool is_trained = variable.trainable && !variable.frozen;
    LOCKSTEP_RETURN_IF_ERROR(
        Annotate(CheckTowerName(variable.name, is_trained, static_cast<int>(job.towers())),
                 "strategy.replicated"));
  }
  if (!job.strategy().replicated().cross_tower_ops().has_collective_all_reduce()) {
    return absl::OkStatus();
  }
  for (const ModelVariable& variable : graph.variables()) {
    if (!variable.sparse || variable.frozen) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "strategy.replicated.cross_tower_ops.collective_all_reduce: IndexedSlices is not "
        "supported for Collective All-Reduce, and the gradient of \"",
        variable.name,
        "\" comes as rows. Remedy: leave it out, or use multi_worker_all_reduce {}: these gather "
        "the rows"));
  }
  return absl::OkStatus();
}

// Where the data are less than a load, batches are smaller than the job alone tells.
absl::Status FillLoadedBatch(int64_t num_workers, CheckedJob* checked) {
  JobDef* job = &checked->job;
  if (!job->has_local_sync()) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const LoadSchedule schedule,
                            LoadScheduleOf(*job, checked->examples.train,
                                           checked->examples.rows_per_sequence, num_workers));
  job->set_batch_per_tower(schedule.plan(0).sequences_per_batch());
  job->set_global_batch(num_workers * job->towers() * job->batch_per_tower());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CheckedJob> CheckedJob::Create(const std::string& job_file, LoadedJob loaded,
                                              int64_t num_workers) {
  LOCKSTEP_RETURN_IF_ERROR(Annotate(ValidateJob(&loaded.job, num_workers), job_file));
  CheckedJob checked{.job = std::move(loaded.job), .model = std::move(loaded.model)};
  absl::StatusOr<ModelGraph> graph = ModelGraph::Build(checked.model);
  if (!graph.ok()) return Annotate(graph.status(), checked.job.model());
  LOCKSTEP_RETURN_IF_ERROR(Annotate(CheckInitializers(checked.model), checked.job.model()));
  checked.graph = *std::move(graph);
  LOCKSTEP_RETURN_IF_ERROR(Annotate(
      CheckAveraged(checked.job.optimizer().variable_averages(), checked.graph), job_file));
  LOCKSTEP_RETURN_IF_ERROR(Annotate(CheckLosses(checked.job, checked.graph), job_file));
  LOCKSTEP_RETURN_IF_ERROR(Annotate(CheckReplicated(checked.job, checked.graph), job_file));
  absl::StatusOr<std::vector<uint32_t>> losses = AssignLosses(checked.job, checked.graph);
  if (!losses.ok()) return Annotate(losses.status(), job_file);
  checked.losses = *std::move(losses);
  const ExampleSpec spec = ExampleSpecOf(checked.graph);
  if (!spec.row_indices.empty()) {
    LOCKSTEP_RETURN_IF_ERROR(Annotate(CheckIndicesKept(checked.job.data()), job_file));
  }
  if (spec.classifier) {
    LOCKSTEP_RETURN_IF_ERROR(
        Annotate(NumClasses(checked.job.data().num_classes(), spec).status(), job_file));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(checked.examples,
                            MeasureDataset(checked.job.data(), spec, num_workers));
  LOCKSTEP_RETURN_IF_ERROR(Annotate(FillLoadedBatch(num_workers, &checked), job_file));
  return checked;
}

absl::Status MakeCheckpointFolder(const std::string& job_file, const JobDef& job) {
  const std::string& folder = job.checkpoint().folder();
  if (folder.empty()) return absl::OkStatus();
  return AddRemedy(Annotate(MakeFolders(folder), absl::StrCat(job_file, ": checkpoint.folder")),
                   "name a folder in which this user may write");
}

}  // namespace lockstep
