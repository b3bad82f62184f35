#include "chief/plan/check_batches.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/dataset/transform_of_job.h"

namespace lockstep::chief {
namespace {

int64_t ExamplesOf(const DatasetSizes& examples, const FileShard& shard) {
  const int64_t files = static_cast<int64_t>(examples.train_files.size());
  int64_t sum = 0;
  for (int64_t i = shard.index; i < files; i += shard.count) sum += examples.train_files[i];
  return sum;
}

}  // namespace

absl::Status CheckBatches(const JobDef& job, const DatasetSizes& examples, int64_t num_workers,
                          GlobalStep max_steps) {
  if (job.data().transform().empty()) return absl::OkStatus();
  for (int64_t worker = 0; worker < num_workers; ++worker) {
    const ReplicaOf replica{.replica = worker, .num_replicas = num_workers};
    const auto steps = TransformStepsOf(job.data(), replica, job.batch_per_tower());
    LOCKSTEP_ASSIGN_OR_RETURN(
        const int64_t groups,
        CountGroups(steps, ExamplesOf(examples, FileShardOf(job.data(), replica)), job.towers()));
    if (groups == kEndless) continue;
    if (job.sync().has_asynchronous()) {
      return absl::InvalidArgumentError(
          "data.transform: the data end, and in an asynchronous job no worker knows how many steps "
          "it takes. Remedy: add repeat {}");
    }
    if (groups >= max_steps.value()) continue;
    return absl::InvalidArgumentError(absl::StrCat(
        "data.transform: worker ", worker, " has data for ", groups, " steps, the job has ",
        max_steps.value(), ". Remedy: add repeat {}, or lower max_steps or data_epochs"));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::chief
