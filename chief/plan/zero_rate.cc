#include "chief/plan/zero_rate.h"

#include <algorithm>
#include <cstdint>
#include <limits>

#include "absl/strings/str_cat.h"
#include "common/base/quantity.h"

namespace lockstep::chief {
namespace {

constexpr int64_t kNever = std::numeric_limits<int64_t>::max();

struct ZeroRate {
  int64_t from = kNever;  // the first step whose rate is 0, as are those of all later ones
  const char* schedule = "";
};

// Other schedules stay above 0. Rounding gives 0 for a few steps before decay_steps, too.
ZeroRate ZeroRateOf(const LearningRate& rate) {
  ZeroRate zero;
  if (rate.has_cosine() && rate.cosine().alpha() == 0) {
    zero = {.from = rate.cosine().decay_steps(), .schedule = "cosine"};
  } else if (rate.has_polynomial() && rate.polynomial().end_learning_rate() == 0 &&
             !rate.polynomial().cycle()) {
    zero = {.from = rate.polynomial().decay_steps(), .schedule = "polynomial"};
  }
  // A warm-up ends at the rate that the schedule has at its end, and reaches it a step before.
  const int64_t warm = rate.warm_up().steps();
  if (zero.from <= warm && warm > 0) zero.from = rate.warm_up().start() > 0 ? warm - 1 : 0;
  return zero;
}

// `field` is the path of the optimizer in the job file.
std::string WarningOf(const OptimizerDef& optimizer, const std::string& field, GlobalStep start,
                      GlobalStep end) {
  const ZeroRate zero = ZeroRateOf(optimizer.learning_rate());
  if (start >= end || zero.from >= end.value()) return "";
  const int64_t from = std::max(zero.from, start.value());
  return absl::StrCat(field, ".learning_rate.", zero.schedule,
                      ": the learning rate is 0 from step ", WithCommas(from),
                      " on, so the steps to ", WithCommas(end.value()),
                      " do not train. Remedy: raise decay_steps to ", end.value());
}

}  // namespace

std::string ZeroRateWarning(const JobDef& job, GlobalStep start, GlobalStep end) {
  if (job.losses().empty()) return WarningOf(job.optimizer(), "optimizer", start, end);
  for (int i = 0; i < job.losses_size(); ++i) {
    std::string warning =
        WarningOf(job.losses(i).optimizer(), absl::StrCat("losses[", i, "].optimizer"), start, end);
    if (!warning.empty()) return warning;
  }
  return "";
}

}  // namespace lockstep::chief
