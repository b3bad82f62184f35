// The variables, slots and gradients of every tower of a worker, and how a step changes them.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/thread_pool.h"
#include "common/optimizer_proto/optimizer_rules.h"
#include "common/update/variable.h"
#include "worker/cache/variable_layout.h"
#include "worker/collective/group_reducer.h"
#include "worker/strategy/replicated/replica_state.h"
#include "worker/tower/tower_memory.h"

namespace lockstep::worker {

struct ReplicasOptions {
  int towers = 1;
  int threads = 1;  // that apply
};

// Thread-compatible. Variables are counted as in the layout, whose last one is the loss. In steady
// state a step allocates no tensor.
class Replicas {
 public:
  // Every tower begins with the same state. The layout outlives this. INVALID_ARGUMENT: a state of
  // other scalars than the rule has.
  static absl::StatusOr<std::unique_ptr<Replicas>> Create(const ReplicasOptions& options,
                                                          const VariableLayout& layout,
                                                          OptimizerRules rules, ReplicaState state);

  GlobalStep version() const { return version_; }
  // By tower. Valid until Apply.
  std::span<const TowerMemory> memory() const { return memory_; }
  // The variables that are reduced: trained ones, in the layout's order.
  std::span<const int> reduced() const { return reduced_; }
  // gradients()[t][i]: what tower t computed for variable reduced()[i].
  std::span<const std::vector<TensorView>> gradients() const { return trained_gradients_; }

  // Makes the next version on every tower: reduced.tensor(t, i) is the gradient of variable
  // reduced()[i] on tower t; a statistic gets the value that its own tower computed.
  void Apply(float learning_rate, const GroupReducer& reduced);

  // Of tower 0.
  const Variable& variable(size_t variable) const { return *towers_[0].variables[variable]; }
  std::span<const float> scalars() const { return scalars_; }
  // The same tower's values and slots, in the order of TensorsOf. Valid until Apply.
  std::vector<TensorView> StateOfTower0() const;

 private:
  struct Tower {
    std::vector<std::unique_ptr<Variable>> variables;
    std::vector<TensorView> values;
    std::vector<Tensor> gradient_memory;
    std::vector<MutableTensorView> gradients;
  };

  Replicas(const ReplicasOptions& options, const VariableLayout& layout, OptimizerRules rules,
           ReplicaState state);
  Tower MakeTower(const ReplicaState& state) const;
  // Whether a step changes it.
  bool Changes(size_t variable) const;

  const VariableLayout& layout_;
  const OptimizerRules rules_;
  std::vector<const UpdateRule*> rule_of_;  // by variable; of rules_
  ThreadPool pool_;
  GlobalStep version_;
  std::vector<float> scalars_;
  std::vector<int> reduced_;
  std::vector<Tower> towers_;
  std::vector<TowerMemory> memory_;
  std::vector<std::vector<TensorView>> trained_gradients_;  // by tower
};

}  // namespace lockstep::worker
