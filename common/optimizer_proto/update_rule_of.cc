#include "common/optimizer_proto/update_rule_of.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/optimizer/adadelta.h"
#include "common/optimizer/adagrad.h"
#include "common/optimizer/adam.h"
#include "common/optimizer/ftrl.h"
#include "common/optimizer/momentum.h"
#include "common/optimizer/moving_average.h"
#include "common/optimizer/rmsprop.h"
#include "common/optimizer/sgd.h"
#include "common/optimizer_proto/custom_optimizer.h"

namespace lockstep {
namespace {

AdagradOptions OptionsOf(const OptimizerDef::Adagrad& adagrad) {
  AdagradOptions options;
  if (adagrad.has_initial_accumulator_value()) {
    options.initial_accumulator_value = adagrad.initial_accumulator_value();
  }
  return options;
}

AdadeltaOptions OptionsOf(const OptimizerDef::Adadelta& adadelta) {
  AdadeltaOptions options;
  if (adadelta.has_rho()) options.rho = adadelta.rho();
  if (adadelta.has_epsilon()) options.epsilon = adadelta.epsilon();
  return options;
}

RmsPropOptions OptionsOf(const OptimizerDef::RmsProp& rmsprop) {
  RmsPropOptions options{.momentum = rmsprop.momentum(), .centered = rmsprop.centered()};
  if (rmsprop.has_decay()) options.decay = rmsprop.decay();
  if (rmsprop.has_epsilon()) options.epsilon = rmsprop.epsilon();
  return options;
}

AdamOptions OptionsOf(const OptimizerDef::Adam& adam) {
  AdamOptions options{.lazy = adam.lazy(), .weight_decay = adam.weight_decay()};
  if (adam.has_beta1()) options.beta1 = adam.beta1();
  if (adam.has_beta2()) options.beta2 = adam.beta2();
  if (adam.has_epsilon()) options.epsilon = adam.epsilon();
  return options;
}

FtrlOptions OptionsOf(const OptimizerDef::Ftrl& ftrl) {
  FtrlOptions options{
      .l1_regularization_strength = ftrl.l1_regularization_strength(),
      .l2_regularization_strength = ftrl.l2_regularization_strength(),
      .l2_shrinkage_regularization_strength = ftrl.l2_shrinkage_regularization_strength(),
      .beta = ftrl.beta()};
  if (ftrl.has_learning_rate_power()) options.learning_rate_power = ftrl.learning_rate_power();
  if (ftrl.has_initial_accumulator_value()) {
    options.initial_accumulator_value = ftrl.initial_accumulator_value();
  }
  return options;
}

}  // namespace

absl::StatusOr<std::unique_ptr<const UpdateRule>> UpdateRuleOf(const OptimizerDef& optimizer) {
  switch (optimizer.kind_case()) {
    case OptimizerDef::kSgd:
      return MakeSgd();
    case OptimizerDef::kMomentum:
      return MakeMomentum({optimizer.momentum().momentum(), optimizer.momentum().nesterov()});
    case OptimizerDef::kAdagrad:
      return MakeAdagrad(OptionsOf(optimizer.adagrad()));
    case OptimizerDef::kAdadelta:
      return MakeAdadelta(OptionsOf(optimizer.adadelta()));
    case OptimizerDef::kRmsprop:
      return MakeRmsProp(OptionsOf(optimizer.rmsprop()));
    case OptimizerDef::kAdam:
      return MakeAdam(OptionsOf(optimizer.adam()));
    case OptimizerDef::kFtrl:
      return MakeFtrl(OptionsOf(optimizer.ftrl()));
    case OptimizerDef::kCustom:
      return MakeCustomOptimizer(optimizer.custom());
    case OptimizerDef::KIND_NOT_SET:
      break;
  }
  return absl::InvalidArgumentError(
      "optimizer: expected one of sgd, momentum, adagrad, adadelta, rmsprop, adam, ftrl, got none");
}

absl::StatusOr<std::unique_ptr<const UpdateRule>> AveragedRuleOf(const OptimizerDef& optimizer) {
  if (!optimizer.has_variable_averages()) return nullptr;
  const VariableAverages& averages = optimizer.variable_averages();
  if (!(averages.decay() > 0 && averages.decay() < 1)) {
    return absl::InvalidArgumentError(
        absl::StrCat("optimizer.variable_averages.decay: expected a number between 0 and 1, got ",
                     averages.decay()));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(auto rule, UpdateRuleOf(optimizer));
  return MakeAveraged(std::move(rule),
                      {.decay = averages.decay(), .num_updates = averages.num_updates()});
}

bool IsAveraged(const OptimizerDef& optimizer, absl::string_view variable) {
  if (!optimizer.has_variable_averages()) return false;
  const auto& only = optimizer.variable_averages().only();
  return only.empty() || std::find(only.begin(), only.end(), variable) != only.end();
}

}  // namespace lockstep
