#include <cmath>

#include "common/base/status_macros.h"
#include "common/config/job_rules.h"
#include "common/config/rule.h"

namespace lockstep {
namespace {

absl::Status CheckPositive(absl::string_view field, float value) {
  if (value > 0 && std::isfinite(value)) return absl::OkStatus();
  return OutOfRange(field, "a positive number", value);
}

// 0 stands for the default and is right, too, where the field has none.
absl::Status CheckFraction(absl::string_view field, float value) {
  if (value >= 0 && value < 1) return absl::OkStatus();
  return OutOfRange(field, "a number from 0 to below 1", value);
}

absl::Status CheckAdam(const OptimizerDef::Adam& adam) {
  LOCKSTEP_RETURN_IF_ERROR(CheckFraction("optimizer.adam.beta1", adam.beta1()));
  LOCKSTEP_RETURN_IF_ERROR(CheckFraction("optimizer.adam.beta2", adam.beta2()));
  if (adam.epsilon() == 0) return absl::OkStatus();
  return CheckPositive("optimizer.adam.epsilon", adam.epsilon());
}

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

absl::Status CheckLearningRate(const LearningRate& rate) {
  if (rate.has_piecewise()) return CheckPiecewise(rate);
  LOCKSTEP_RETURN_IF_ERROR(CheckPositive("optimizer.learning_rate.base", rate.base()));
  if (rate.has_exponential()) {
    LOCKSTEP_RETURN_IF_ERROR(CheckPositive("optimizer.learning_rate.exponential.decay_rate",
                                           rate.exponential().decay_rate()));
    return CheckCount("optimizer.learning_rate.exponential.decay_steps",
                      rate.exponential().decay_steps(), 1);
  }
  if (rate.has_cosine()) {
    const float alpha = rate.cosine().alpha();
    if (!(alpha >= 0 && alpha <= 1)) {
      return OutOfRange("optimizer.learning_rate.cosine.alpha", "a number from 0 to 1", alpha);
    }
    return CheckCount("optimizer.learning_rate.cosine.decay_steps", rate.cosine().decay_steps(), 1);
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOptimizer(const OptimizerDef& optimizer) {
  switch (optimizer.kind_case()) {
    case OptimizerDef::KIND_NOT_SET:
      return Broken("optimizer", "it has no kind", "write sgd {}, momentum {...} or adam {}");
    case OptimizerDef::kSgd:
      break;
    case OptimizerDef::kMomentum:
      LOCKSTEP_RETURN_IF_ERROR(
          CheckFraction("optimizer.momentum.momentum", optimizer.momentum().momentum()));
      break;
    case OptimizerDef::kAdam:
      LOCKSTEP_RETURN_IF_ERROR(CheckAdam(optimizer.adam()));
      break;
  }
  return CheckLearningRate(optimizer.learning_rate());
}

}  // namespace lockstep
