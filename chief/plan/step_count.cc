#include "chief/plan/step_count.h"

#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/config/load_schedule_of.h"

namespace lockstep::chief {
namespace {

// Beyond it nobody means what the job says, and step numbers no longer fit a double.
constexpr double kMostSteps = 1e15;

// So many steps take so many data epochs.
struct StepRate {
  int64_t steps = 0;
  int64_t data_epochs = 0;
};

absl::StatusOr<StepRate> StepRateOf(const JobDef& job, const DatasetSizes& examples,
                                    int64_t num_workers) {
  if (job.has_local_sync()) {
    LOCKSTEP_ASSIGN_OR_RETURN(
        const LoadSchedule schedule,
        LoadScheduleOf(job, examples.train, examples.rows_per_sequence, num_workers));
    return StepRate{schedule.steps_per_data_epoch(), 1};
  }
  // An asynchronous step is of one tower.
  return StepRate{examples.train,
                  job.sync().has_asynchronous() ? job.batch_per_tower() : job.global_batch()};
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
  const double steps = RoundUp(job.data_epochs() * static_cast<double>(rate.steps) /
                               static_cast<double>(rate.data_epochs));
  if (steps >= 1 && steps <= kMostSteps) return GlobalStep(static_cast<int64_t>(steps));
  return absl::InvalidArgumentError(absl::StrCat("data_epochs: ", job.data_epochs(),
                                                 " passes over the data are more than ", kMostSteps,
                                                 " steps. Remedy: lower it"));
}

}  // namespace lockstep::chief
