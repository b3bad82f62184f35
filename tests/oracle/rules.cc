#include "tests/oracle/rules.h"

#include <vector>

#include "absl/strings/str_cat.h"
#include "common/optimizer/adadelta.h"
#include "common/optimizer/adagrad.h"
#include "common/optimizer/adam.h"
#include "common/optimizer/ftrl.h"
#include "common/optimizer/momentum.h"
#include "common/optimizer/rmsprop.h"
#include "common/optimizer/sgd.h"

namespace lockstep::oracle {
namespace {

using nlohmann::json;

float Float(const json& from, const char* name) { return from.at(name).get<float>(); }

std::unique_ptr<const UpdateRule> MakeMomentumOf(const json& hyper, bool nesterov) {
  return MakeMomentum({Float(hyper, "momentum"), nesterov});
}

std::unique_ptr<const UpdateRule> MakeRmsPropOf(const json& hyper, bool centered) {
  return MakeRmsProp(
      {Float(hyper, "decay"), Float(hyper, "momentum"), Float(hyper, "epsilon"), centered});
}

std::unique_ptr<const UpdateRule> MakeAdamOf(const json& hyper, bool lazy) {
  return MakeAdam({.beta1 = Float(hyper, "beta1"),
                   .beta2 = Float(hyper, "beta2"),
                   .epsilon = Float(hyper, "epsilon"),
                   .lazy = lazy,
                   .weight_decay = hyper.value("weight_decay", 0.0f)});
}

std::unique_ptr<const UpdateRule> MakeFtrlOf(const json& hyper) {
  return MakeFtrl({.learning_rate_power = Float(hyper, "learning_rate_power"),
                   .initial_accumulator_value = Float(hyper, "initial_accumulator_value"),
                   .l1_regularization_strength = Float(hyper, "l1_regularization_strength"),
                   .l2_regularization_strength = Float(hyper, "l2_regularization_strength"),
                   .l2_shrinkage_regularization_strength =
                       Float(hyper, "l2_shrinkage_regularization_strength")});
}

template <typename Kind>
Kind Decay(const json& spec) {
  return {Float(spec, "decay_rate"), spec.at("decay_steps"), spec.at("staircase")};
}

}  // namespace

absl::StatusOr<std::unique_ptr<const UpdateRule>> RuleOf(const std::string& optimizer,
                                                         const json& hyper) {
  if (optimizer == "sgd") return MakeSgd();
  if (optimizer == "momentum") return MakeMomentumOf(hyper, false);
  if (optimizer == "nesterov") return MakeMomentumOf(hyper, true);
  if (optimizer == "adagrad") return MakeAdagrad({Float(hyper, "initial_accumulator_value")});
  if (optimizer == "adadelta") return MakeAdadelta({Float(hyper, "rho"), Float(hyper, "epsilon")});
  if (optimizer == "rmsprop") return MakeRmsPropOf(hyper, false);
  if (optimizer == "rmsprop_centered") return MakeRmsPropOf(hyper, true);
  if (optimizer == "adam" || optimizer == "adamw") return MakeAdamOf(hyper, false);
  if (optimizer == "lazy_adam") return MakeAdamOf(hyper, true);
  if (optimizer == "ftrl") return MakeFtrlOf(hyper);
  return absl::InvalidArgumentError(absl::StrCat("no optimizer is called \"", optimizer, "\""));
}

absl::StatusOr<LearningRateSchedule> ScheduleOf(const json& rate) {
  if (rate.is_number()) return LearningRateSchedule{.base = rate.get<float>()};
  const std::string kind = rate.at("schedule");
  if (kind == "piecewise") {
    return LearningRateSchedule{
        .kind = PiecewiseSchedule{rate.at("boundaries").get<std::vector<int64_t>>(),
                                  rate.at("values").get<std::vector<float>>()}};
  }
  LearningRateSchedule schedule{.base = Float(rate, "learning_rate")};
  if (kind == "exponential") {
    schedule.kind = Decay<ExponentialSchedule>(rate);
  } else if (kind == "natural_exp") {
    schedule.kind = Decay<NaturalExponentialSchedule>(rate);
  } else if (kind == "inverse_time") {
    schedule.kind = Decay<InverseTimeSchedule>(rate);
  } else if (kind == "polynomial") {
    schedule.kind = PolynomialSchedule{rate.at("decay_steps"), Float(rate, "end_learning_rate"),
                                       Float(rate, "power"), rate.at("cycle")};
  } else if (kind == "cosine") {
    schedule.kind = CosineSchedule{rate.at("decay_steps"), Float(rate, "alpha")};
  } else {
    return absl::InvalidArgumentError(absl::StrCat("no schedule is called \"", kind, "\""));
  }
  return schedule;
}

}  // namespace lockstep::oracle
