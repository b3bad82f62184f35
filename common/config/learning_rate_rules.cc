#include "common/base/status_macros.h"
#include "common/config/job_rules.h"
#include "common/config/rule.h"

namespace lockstep {
namespace {

absl::Status CheckPiecewise(const LearningRate& rate) {
  const LearningRate::Piecewise& piecewise = rate.piecewise();
  if (rate.base() != 0) {
    return Broken("optimizer.learning_rate.base", "piecewise.values replace it", "remove it");
  }
  if (piecewise.values_size() != piecewise.boundaries_size() + 1) {
    return Broken("optimizer.learning_rate.piecewise.values",
                  absl::StrCat("expected one more than the ", piecewise.boundaries_size(),
                               " boundaries, got ", piecewise.values_size()),
                  "give a value for before, between and after the boundaries");
  }
  int64_t previous = -1;
  for (int64_t boundary : piecewise.boundaries()) {
    if (boundary <= previous) {
      return Broken("optimizer.learning_rate.piecewise.boundaries",
                    absl::StrCat("expected ascending steps from 0 on, got ", boundary,
                                 previous < 0 ? "" : absl::StrCat(" after ", previous)),
                    "sort them, each once");
    }
    previous = boundary;
  }
  for (float value : piecewise.values()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckPositive("optimizer.learning_rate.piecewise.values", value));
  }
  return absl::OkStatus();
}

absl::Status CheckCosine(const LearningRate::Cosine& cosine) {
  if (!(cosine.alpha() >= 0 && cosine.alpha() <= 1)) {
    return OutOfRange("optimizer.learning_rate.cosine.alpha", "a number from 0 to 1",
                      cosine.alpha());
  }
  return CheckCount("optimizer.learning_rate.cosine.decay_steps", cosine.decay_steps(), 1);
}

absl::Status CheckPolynomial(const LearningRate::Polynomial& polynomial) {
  LOCKSTEP_RETURN_IF_ERROR(CheckNotNegative("optimizer.learning_rate.polynomial.end_learning_rate",
                                            polynomial.end_learning_rate()));
  if (polynomial.has_power()) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckPositive("optimizer.learning_rate.polynomial.power", polynomial.power()));
  }
  return CheckCount("optimizer.learning_rate.polynomial.decay_steps", polynomial.decay_steps(), 1);
}

template <typename Decay>
absl::Status CheckDecay(absl::string_view schedule, const Decay& decay) {
  const std::string field = absl::StrCat("optimizer.learning_rate.", schedule);
  LOCKSTEP_RETURN_IF_ERROR(CheckPositive(absl::StrCat(field, ".decay_rate"), decay.decay_rate()));
  return CheckCount(absl::StrCat(field, ".decay_steps"), decay.decay_steps(), 1);
}

absl::Status CheckSchedule(const LearningRate& rate) {
  switch (rate.schedule_case()) {
    case LearningRate::kPiecewise:
      return CheckPiecewise(rate);
    case LearningRate::kExponential:
      return CheckDecay("exponential", rate.exponential());
    case LearningRate::kNaturalExp:
      return CheckDecay("natural_exp", rate.natural_exp());
    case LearningRate::kInverseTime:
      return CheckDecay("inverse_time", rate.inverse_time());
    case LearningRate::kPolynomial:
      return CheckPolynomial(rate.polynomial());
    case LearningRate::kCosine:
      return CheckCosine(rate.cosine());
    case LearningRate::kConstant:
    case LearningRate::SCHEDULE_NOT_SET:
      break;
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckLearningRate(const LearningRate& rate) {
  if (!rate.has_piecewise()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckPositive("optimizer.learning_rate.base", rate.base()));
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckSchedule(rate));
  if (!rate.has_warm_up()) return absl::OkStatus();
  LOCKSTEP_RETURN_IF_ERROR(
      CheckNotNegative("optimizer.learning_rate.warm_up.start", rate.warm_up().start()));
  return CheckCount("optimizer.learning_rate.warm_up.steps", rate.warm_up().steps(), 1);
}

}  // namespace lockstep
