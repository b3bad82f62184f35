#include <cmath>

#include "absl/container/flat_hash_set.h"
#include "common/base/status_macros.h"
#include "common/config/job_rules.h"
#include "common/config/rule.h"

namespace lockstep {
namespace {

absl::Status CheckFraction(absl::string_view field, float value) {
  if (value >= 0 && value < 1) return absl::OkStatus();
  return OutOfRange(field, "a number from 0 to below 1", value);
}

absl::Status CheckAdam(const OptimizerDef::Adam& adam) {
  LOCKSTEP_RETURN_IF_ERROR(CheckFraction("optimizer.adam.beta1", adam.beta1()));
  LOCKSTEP_RETURN_IF_ERROR(CheckFraction("optimizer.adam.beta2", adam.beta2()));
  LOCKSTEP_RETURN_IF_ERROR(CheckNotNegative("optimizer.adam.weight_decay", adam.weight_decay()));
  if (!adam.has_epsilon()) return absl::OkStatus();
  return CheckPositive("optimizer.adam.epsilon", adam.epsilon());
}

absl::Status CheckAdagrad(const OptimizerDef::Adagrad& adagrad) {
  if (!adagrad.has_initial_accumulator_value()) return absl::OkStatus();
  return CheckPositive("optimizer.adagrad.initial_accumulator_value",
                       adagrad.initial_accumulator_value());
}

absl::Status CheckAdadelta(const OptimizerDef::Adadelta& adadelta) {
  LOCKSTEP_RETURN_IF_ERROR(CheckFraction("optimizer.adadelta.rho", adadelta.rho()));
  if (!adadelta.has_epsilon()) return absl::OkStatus();
  return CheckPositive("optimizer.adadelta.epsilon", adadelta.epsilon());
}

absl::Status CheckRmsProp(const OptimizerDef::RmsProp& rmsprop) {
  LOCKSTEP_RETURN_IF_ERROR(CheckFraction("optimizer.rmsprop.decay", rmsprop.decay()));
  LOCKSTEP_RETURN_IF_ERROR(CheckFraction("optimizer.rmsprop.momentum", rmsprop.momentum()));
  if (!rmsprop.has_epsilon()) return absl::OkStatus();
  return CheckPositive("optimizer.rmsprop.epsilon", rmsprop.epsilon());
}

absl::Status CheckFtrl(const OptimizerDef::Ftrl& ftrl) {
  const float power = ftrl.learning_rate_power();
  if (!(power <= 0 && std::isfinite(power))) {
    return OutOfRange("optimizer.ftrl.learning_rate_power", "a number up to 0", power);
  }
  struct Strength {
    const char* field;
    float value;
  };
  for (const Strength& strength :
       {Strength{"initial_accumulator_value", ftrl.initial_accumulator_value()},
        Strength{"l1_regularization_strength", ftrl.l1_regularization_strength()},
        Strength{"l2_regularization_strength", ftrl.l2_regularization_strength()},
        Strength{"l2_shrinkage_regularization_strength",
                 ftrl.l2_shrinkage_regularization_strength()},
        Strength{"beta", ftrl.beta()}}) {
    LOCKSTEP_RETURN_IF_ERROR(
        CheckNotNegative(absl::StrCat("optimizer.ftrl.", strength.field), strength.value));
  }
  return absl::OkStatus();
}

absl::Status CheckCustom(const CustomKind& custom) {
  return Broken("optimizer.custom.type",
                absl::StrCat("no optimizer is registered as \"", custom.type(), "\""),
                "use one of sgd, momentum, adagrad, adadelta, rmsprop, adam and ftrl, or link the "
                "code that registers it into every program");
}

absl::Status CheckKind(const OptimizerDef& optimizer) {
  switch (optimizer.kind_case()) {
    case OptimizerDef::kSgd:
      return absl::OkStatus();
    case OptimizerDef::kMomentum:
      return CheckFraction("optimizer.momentum.momentum", optimizer.momentum().momentum());
    case OptimizerDef::kAdam:
      return CheckAdam(optimizer.adam());
    case OptimizerDef::kAdagrad:
      return CheckAdagrad(optimizer.adagrad());
    case OptimizerDef::kAdadelta:
      return CheckAdadelta(optimizer.adadelta());
    case OptimizerDef::kRmsprop:
      return CheckRmsProp(optimizer.rmsprop());
    case OptimizerDef::kFtrl:
      return CheckFtrl(optimizer.ftrl());
    case OptimizerDef::kCustom:
      return CheckCustom(optimizer.custom());
    case OptimizerDef::KIND_NOT_SET:
      break;
  }
  return Broken("optimizer", "it has no kind",
                "write sgd {}, momentum {...}, adagrad {}, adadelta {}, rmsprop {}, adam {} or "
                "ftrl {}");
}

absl::Status CheckClipping(const Clipping& clipping) {
  switch (clipping.kind_case()) {
    case Clipping::kValue:
      return CheckPositive("optimizer.clipping.value", clipping.value());
    case Clipping::kNorm:
      return CheckPositive("optimizer.clipping.norm", clipping.norm());
    case Clipping::kGlobalNorm:
      return CheckPositive("optimizer.clipping.global_norm", clipping.global_norm());
    case Clipping::KIND_NOT_SET:
      break;
  }
  return Broken("optimizer.clipping", "it has no kind",
                "write value, norm or global_norm, or remove it");
}

absl::Status CheckAverages(const VariableAverages& averages) {
  const float decay = averages.decay();
  if (!(decay > 0 && decay < 1)) {
    return OutOfRange("optimizer.variable_averages.decay", "a number between 0 and 1", decay);
  }
  absl::flat_hash_set<absl::string_view> names;
  for (const std::string& name : averages.only()) {
    if (names.insert(name).second) continue;
    return Broken("optimizer.variable_averages.only",
                  absl::StrCat("variable \"", name, "\" comes twice"), "name each variable once");
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status CheckOptimizer(const OptimizerDef& optimizer) {
  LOCKSTEP_RETURN_IF_ERROR(CheckKind(optimizer));
  LOCKSTEP_RETURN_IF_ERROR(CheckLearningRate(optimizer.learning_rate()));
  if (optimizer.has_clipping()) LOCKSTEP_RETURN_IF_ERROR(CheckClipping(optimizer.clipping()));
  if (!optimizer.has_variable_averages()) return absl::OkStatus();
  return CheckAverages(optimizer.variable_averages());
}

}  // namespace lockstep
