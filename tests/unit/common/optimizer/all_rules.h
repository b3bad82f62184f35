// One of every update rule, for what all of them promise.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "common/optimizer/adadelta.h"
#include "common/optimizer/adagrad.h"
#include "common/optimizer/adam.h"
#include "common/optimizer/ftrl.h"
#include "common/optimizer/momentum.h"
#include "common/optimizer/moving_average.h"
#include "common/optimizer/rmsprop.h"
#include "common/optimizer/sgd.h"

namespace lockstep::test {

struct NamedRule {
  std::string name;
  std::unique_ptr<const UpdateRule> rule;
};

inline std::vector<NamedRule> AllRules() {
  std::vector<NamedRule> rules;
  rules.push_back({"sgd", MakeSgd()});
  rules.push_back({"momentum", MakeMomentum({.9f, false})});
  rules.push_back({"nesterov", MakeMomentum({.9f, true})});
  rules.push_back({"adagrad", MakeAdagrad({})});
  rules.push_back({"adadelta", MakeAdadelta({})});
  rules.push_back({"rmsprop", MakeRmsProp({.9f, .9f, 1e-3f, false})});
  rules.push_back({"centered rmsprop", MakeRmsProp({.9f, .9f, 1e-3f, true})});
  rules.push_back({"adam", MakeAdam({})});
  rules.push_back({"adamw", MakeAdam({.weight_decay = .01f})});
  rules.push_back({"ftrl", MakeFtrl({.l1_regularization_strength = .01f})});
  rules.push_back({"ftrl with shrinkage", MakeFtrl({.l2_shrinkage_regularization_strength = .1f})});
  rules.push_back({"averaged momentum", MakeAveraged(MakeMomentum({.9f, false}), {})});
  return rules;
}

}  // namespace lockstep::test
