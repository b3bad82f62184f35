#include "chief/plan/check_batches.h"

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/dataset/transform_of_job.h"

namespace lockstep::chief {

absl::Status CheckBatches(const JobDef& job, const DatasetSizes& examples, int64_t num_workers,
                          GlobalStep max_steps) {
  if (job.data().transform().empty()) return absl::OkStatus();
  for (int64_t worker = 0; worker < num_workers; ++worker) {
    const ReplicaOf replica{.replica = worker, .num_replicas = num_workers};
    const auto steps = TransformStepsOf(job.data(), replica, job.batch_per_tower());
    const int64_t own = ExamplesOf(examples.train_files, FileShardOf(job.data(), replica));
    LOCKSTEP_ASSIGN_OR_RETURN(const int64_t groups, CountGroups(steps, own, job.towers()));
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
