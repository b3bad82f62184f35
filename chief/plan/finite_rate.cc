#include "chief/plan/finite_rate.h"

#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "common/base/quantity.h"
#include "common/base/status_macros.h"
#include "common/optimizer_proto/learning_rate.h"

namespace lockstep::chief {
namespace {

// `field` is the path of the optimizer in the job file. Only an exponential schedule can grow, and
// then the last step has its largest rate.
absl::Status CheckLastRate(const OptimizerDef& optimizer, const std::string& field,
                           GlobalStep end) {
  const GlobalStep last(end.value() - 1);
  if (std::isfinite(LearningRateAt(ToSchedule(optimizer.learning_rate()), last))) {
    return absl::OkStatus();
  }
  return absl::InvalidArgumentError(absl::StrCat(
      field,
      ".learning_rate.exponential.decay_rate: expected a finite learning rate at the last "
      "step, ",
      WithCommas(last.value()), ", got inf, because ",
      optimizer.learning_rate().exponential().decay_rate(),
      " lets it grow. Remedy: lower decay_rate, or raise decay_steps"));
}

}  // namespace

absl::Status CheckFiniteRate(const JobDef& job, GlobalStep end) {
  if (job.losses().empty()) return CheckLastRate(job.optimizer(), "optimizer", end);
  for (int i = 0; i < job.losses_size(); ++i) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckLastRate(job.losses(i).optimizer(), absl::StrCat("losses[", i, "].optimizer"), end));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::chief
