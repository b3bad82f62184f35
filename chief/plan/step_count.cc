#include "chief/plan/step_count.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/load_schedule_of.h"
#include "common/dataset/transform_of_job.h"

namespace lockstep::chief {
namespace {

// Beyond it nobody means what the job says, and step numbers no longer fit a double.
constexpr double kMostSteps = 1e15;

// So many steps take so many data epochs.
struct StepRate {
  double steps = 0;
  double data_epochs = 0;
};

// Whether each worker passes over all examples, so that the workers together make as many passes.
bool ReadsAll(const DataDef& data) {
  return data.auto_shard() == DataDef::OFF &&
         std::ranges::none_of(data.transform(), &DataTransform::has_shard);
}

// Where the data end, the worker with the fewest batches decides; where they do not, the average.
absl::StatusOr<StepRate> TransformedRate(const JobDef& job, const DatasetSizes& examples,
                                         int64_t num_workers) {
  StepRate rate;
  double fewest = std::numeric_limits<double>::max();
  bool is_endless = true;
  for (int64_t worker = 0; worker < num_workers; ++worker) {
    const ReplicaOf replica{.replica = worker, .num_replicas = num_workers};
    LOCKSTEP_ASSIGN_OR_RETURN(
        const GroupRate groups,
        CountGroupsPerPass(TransformStepsOf(job.data(), replica, job.batch_per_tower()),
                           ExamplesOf(examples.train_files, FileShardOf(job.data(), replica)),
                           job.towers()));
    is_endless &= groups.is_endless;
    fewest = std::min(fewest, groups.groups);
    rate.steps += groups.groups;
    rate.data_epochs = groups.passes;
  }
  if (is_endless) {
    rate.data_epochs *= static_cast<double>(num_workers);
  } else {
    rate.steps = fewest;
  }
  if (ReadsAll(job.data())) rate.data_epochs *= static_cast<double>(num_workers);
  // Each tower's batch is a step.
  if (job.sync().has_asynchronous()) rate.steps *= static_cast<double>(num_workers * job.towers());
  return rate;
}

absl::StatusOr<StepRate> StepRateOf(const JobDef& job, const DatasetSizes& examples,
                                    int64_t num_workers) {
  if (job.has_local_sync()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const LoadSchedule schedule,
        LoadScheduleOf(job, examples.train, examples.rows_per_sequence, num_workers));
    return StepRate{static_cast<double>(schedule.steps_per_data_epoch()), 1};
  }
  if (!job.data().transform().empty()) return TransformedRate(job, examples, num_workers);
  // An asynchronous step is of one tower.
  const int64_t batch = job.sync().has_asynchronous() ? job.batch_per_tower() : job.global_batch();
  return StepRate{static_cast<double>(examples.train), static_cast<double>(batch)};
}

// Rounds up, except from just above a whole number. A double is not the decimal number that the
// user has written: 1.1 epochs of 100 steps are 110.00000000000001. The number itself, the product
// and the quotient are each rounded once, by at most half an epsilon.
double RoundUp(double steps) {
  const double nearest = std::round(steps);
  const double error = 1.5 * std::numeric_limits<double>::epsilon() * steps;
  return nearest >= 1 && std::abs(steps - nearest) <= error ? nearest : std::ceil(steps);
}

}  // namespace

absl::StatusOr<GlobalStep> CountSteps(const JobDef& job, const DatasetSizes& examples,
                                      int64_t num_workers) {
  if (job.max_steps() > 0) return GlobalStep(job.max_steps());
  LOCKSTEP_ASSIGN_OR_RETURN(const StepRate rate, StepRateOf(job, examples, num_workers));
  const double steps = RoundUp(job.data_epochs() * rate.steps / rate.data_epochs);
  if (steps >= 1 && steps <= kMostSteps) return GlobalStep(static_cast<int64_t>(steps));
  return absl::InvalidArgumentError(absl::StrCat("data_epochs: ", job.data_epochs(),
                                                 " passes over the data are more than ", kMostSteps,
                                                 " steps. Remedy: lower it"));
}

}  // namespace lockstep::chief
