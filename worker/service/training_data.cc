#include "worker/service/training_data.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "common/dataset/transform_of_job.h"
#include "common/job/example_spec.h"
#include "common/replicas/fitting_replicas.h"
#include "worker/data/prefetch_to_device/device_prefetcher.h"
#include "worker/device/pinned_tensor.h"
#include "worker/service/trainer.h"

namespace lockstep::worker {
namespace {

absl::StatusOr<TrainingData> OpenLoads(const RegisterTaskReply& registration, uint32_t worker,
                                       const ExampleSpec& spec, const TowerDevices& devices) {
  const JobDef& job = registration.job();
  const LocalSyncDef& local_sync = job.local_sync();
  const LocalSyncPipelineOptions options{
      .seed = job.seed(),
      .replica = worker,
      .loads = {.load = local_sync.load(),
                .max_per_device_batch_size = local_sync.max_per_device_batch_size(),
                .passes = local_sync.passes(),
                .towers = TowersOf(job),
                .workers = registration.total_num_replicas()}};
  LOCKSTEP_ASSIGN_OR_RETURN(auto pipeline,
                            LocalSyncPipeline::Open(job.data(), spec, options, devices));
  TrainingData data{.local_sync = pipeline.get(), .smaller_batches = pipeline->smaller_batches()};
  data.by_trainer.push_back(std::move(pipeline));
  return data;
}

// Per tower, of replica views with more replicas than the fewest.
std::vector<int64_t> SmallerBatches(const JobDef& job) {
  std::vector<int64_t> batches;
  for (const int64_t replicas :
       FittingReplicas(job.global_batch(), TowersOf(job), job.sync().min_replicas())) {
    const int64_t batch = job.global_batch() / (replicas * TowersOf(job));
    if (batch < job.batch_per_tower()) batches.push_back(batch);
  }
  return batches;
}

// `expected` 0: the chief does not say.
absl::Status CheckCount(absl::string_view files, int64_t got, int64_t expected) {
  if (expected == 0 || got == expected) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "data: the ", files, " files of this worker have ", WithCommas(static_cast<uint64_t>(got)),
      " examples, the chief has counted ", WithCommas(static_cast<uint64_t>(expected)),
      " in them. Remedy: the same files on this host as on the chief's; if they have changed since "
      "the chief was started, start it again"));
}

absl::Status CheckSameExamples(const RegisterTaskReply& registration, uint32_t worker,
                               const Pipeline& pipeline) {
  const FileShard own =
      FileShardOf(registration.job().data(),
                  {.replica = worker, .num_replicas = registration.total_num_replicas()});
  return CheckCount("training", pipeline.num_examples(),
                    ExamplesOf(registration.training_examples(), own));
}

absl::StatusOr<TrainingData> OpenPipelines(const RegisterTaskReply& registration, uint32_t worker,
                                           const ModelGraph& graph, const TowerDevices& devices) {
  const JobDef& job = registration.job();
  const ExampleSpec spec = ExampleSpecOf(graph);
  if (job.has_local_sync()) return OpenLoads(registration, worker, spec, devices);
  PipelineOptions options{.seed = job.seed(),
                          .replica = worker,
                          .num_replicas = registration.total_num_replicas(),
                          .batch_per_tower = job.batch_per_tower(),
                          .towers = TowersOf(job)};
  TrainingData data;
  if (registration.has_share()) {
    // Not brought to a device ahead: batches of another share could not be taken back.
    options.make_tensor = PinnedTensors(devices.first());
    data.smaller_batches = SmallerBatches(job);
    LOCKSTEP_ASSIGN_OR_RETURN(data.by_trainer.emplace_back(),
                              Pipeline::OpenShared(job.data(), spec, options, job.global_batch()));
    return data;
  }
  // Those in use and those ahead, in memory from which the device copies.
  if (!devices.is_host()) options.copied_batches = DevicePrefetcher::kBatchesAhead + 1;
  if (NumTrainers(job) > 1) {
    LOCKSTEP_ASSIGN_OR_RETURN(data.by_trainer, Pipeline::OpenPerTower(job.data(), spec, options));
  } else {
    LOCKSTEP_ASSIGN_OR_RETURN(data.by_trainer.emplace_back(),
                              Pipeline::Open(job.data(), spec, options));
  }
  if (devices.is_host()) return data;
  for (size_t trainer = 0; trainer < data.by_trainer.size(); ++trainer) {
    std::unique_ptr<Pipeline>& pipeline = data.by_trainer[trainer];
    LOCKSTEP_ASSIGN_OR_RETURN(
        pipeline,
        DevicePrefetcher::Create(std::move(pipeline), DevicesOfTrainer(job, devices, trainer)));
  }
  return data;
}

}  // namespace

absl::StatusOr<TrainingData> OpenTrainingData(const RegisterTaskReply& registration,
                                              uint32_t worker, const ModelGraph& graph,
                                              const TowerDevices& devices) {
  LOCKSTEP_ASSIGN_OR_RETURN(TrainingData data, OpenPipelines(registration, worker, graph, devices));
  LOCKSTEP_RETURN_IF_ERROR(CheckSameExamples(registration, worker, *data.by_trainer.front()));
  return data;
}

absl::StatusOr<std::unique_ptr<TestSet>> OpenTestSet(const RegisterTaskReply& registration,
                                                     const ModelGraph& graph) {
  const DataDef& data = registration.job().data();
  if (!HasTestSet(data)) return nullptr;
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<TestSet> test_set,
                            TestSet::Open(data, ExampleSpecOf(graph)));
  LOCKSTEP_RETURN_IF_ERROR(
      CheckCount("test", test_set->num_examples(), registration.test_examples()));
  if (!test_set->has_labels()) return nullptr;
  return test_set;
}

}  // namespace lockstep::worker
