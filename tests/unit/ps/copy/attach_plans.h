// The variables of shards that get a copy while they train: of every kind, under any optimizer, and
// with losses that take turns.
#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps::test {

inline constexpr uint32_t kWorkers = 2;
inline constexpr uint32_t kDense = 0, kScalar = 1, kTable = 2, kMean = 3, kFrozen = 4;

inline std::map<std::string, OptimizerDef> AllOptimizers() {
  std::map<std::string, OptimizerDef> all;
  all["sgd"].mutable_sgd();
  all["momentum"].mutable_momentum()->set_momentum(0.9f);
  all["nesterov"].mutable_momentum()->set_momentum(0.9f);
  all["nesterov"].mutable_momentum()->set_nesterov(true);
  all["adam"].mutable_adam();
  all["lazy adam"].mutable_adam()->set_lazy(true);
  all["adamw"].mutable_adam()->set_weight_decay(0.01f);
  all["adagrad"].mutable_adagrad();
  all["adadelta"].mutable_adadelta();
  all["rmsprop"].mutable_rmsprop()->set_momentum(0.5f);
  all["centered rmsprop"].mutable_rmsprop()->set_centered(true);
  all["ftrl"].mutable_ftrl()->set_l1_regularization_strength(0.01f);
  return all;
}

inline OptimizerDef Adam() {
  OptimizerDef adam;
  adam.mutable_adam();
  return adam;
}

inline CreateVariablesRequest PlanWith(const OptimizerDef& optimizer) {
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"dense", {5, 7}, 0, true, 2},
                                                    {"scalar", {1}, 0, true, 1},
                                                    {"table", {9, 3}, 0, true, 1, true},
                                                    {"mean", {1}, 0, false, 4},
                                                    {"frozen", {6}, 0, true, 3, false, true}}),
                                       kWorkers, kWorkers);
  *plan.mutable_optimizer() = optimizer;
  plan.mutable_optimizer()->mutable_variable_averages()->set_decay(0.75f);
  plan.mutable_sync()->set_ps_replicas(1);
  plan.mutable_sync()->set_replicas_to_aggregate(kWorkers);
  return plan;
}

// The scalar is trained in every third step, alone; momentum and Adam, whose numbers move on in
// their own steps.
inline CreateVariablesRequest PlanWithTurns() {
  CreateVariablesRequest plan = PlanWith(Adam());
  plan.clear_optimizer();
  for (const int64_t steps : {2, 1}) plan.mutable_placement()->add_turns(steps);
  for (const uint32_t variable : {kDense, kTable, kScalar, kFrozen}) {
    plan.mutable_placement()
        ->mutable_variables(static_cast<int>(variable))
        ->set_loss(variable == kScalar ? 2 : 1);
  }
  LossDef* const first = plan.add_losses();
  first->set_name("first");
  *first->mutable_optimizer() = Adam();
  LossDef* const second = plan.add_losses();
  second->set_name("second");
  second->mutable_optimizer()->mutable_momentum()->set_momentum(0.5f);
  return plan;
}

// Of each cycle of five steps the last two, of a third loss, train variables of another shard
// alone.
inline CreateVariablesRequest PlanWithIdleSteps() {
  CreateVariablesRequest plan = PlanWithTurns();
  plan.mutable_placement()->set_shards(2);
  plan.mutable_placement()->add_turns(2);
  plan.mutable_placement()->mutable_variables(static_cast<int>(kMean))->set_shard(1);
  LossDef* const third = plan.add_losses();
  third->set_name("third");
  third->mutable_optimizer()->mutable_sgd();
  return plan;
}

inline bool IsTrained(const CreateVariablesRequest& plan, uint32_t variable, int64_t step) {
  if (plan.placement().variables(static_cast<int>(variable)).shard() != 0) return false;
  if (plan.losses().empty() || variable == kMean) return true;
  const int64_t cycle = plan.losses_size() == 2 ? 3 : 5;
  return step % cycle == 2 ? variable == kScalar : variable != kScalar && step % cycle < 2;
}

}  // namespace lockstep::ps::test
