// The variables, slots and gradients of every tower of a worker, and how a step changes them.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/base/thread_pool.h"
#include "common/optimizer/clipping.h"
#include "common/optimizer_proto/optimizer_rules.h"
#include "common/tensor/tensor_maker.h"
#include "common/update/variable.h"
#include "worker/cache/variable_layout.h"
#include "worker/collective/group_reducer.h"
#include "worker/strategy/replicated/replica_state.h"
#include "worker/strategy/replicated/row_share.h"
#include "worker/tower/tower_memory.h"

namespace lockstep::worker {

struct ReplicasOptions {
  int towers = 1;
  int threads = 1;  // that apply
  // By variable, of how many rows a step can have a gradient. Of tables alone it is read.
  std::vector<int64_t> most_rows = {};
  bool average = true;  // of gathered rows; false: their sum
};

// Thread-compatible. Variables are counted as in the layout, whose last one is the loss. In steady
// state a step allocates no tensor, but for the rows of tables.
//
// Tables: every tower keeps them whole. A step gives it copies of the rows that the worker's
// batches read, and its gradient is a share (RowShare) of what is gathered.
class Replicas {
 public:
  // Every tower begins with the same state. `make_tensor` makes the values, rows and gradients that
  // memory() has, but for the values of the state, which one tower keeps. The layout outlives this.
  // INVALID_ARGUMENT: a state of other scalars than the rule has.
  static absl::StatusOr<std::unique_ptr<Replicas>> Create(const ReplicasOptions& options,
                                                          const VariableLayout& layout,
                                                          OptimizerRules rules, ReplicaState state,
                                                          TensorMaker make_tensor = OnHeap);

  GlobalStep version() const { return version_; }
  // Copies these rows of the tables, which are what StepInput::rows has, for every tower, and makes
  // room for their gradients. Where there are tables: before each step's use of memory().
  void ReadRows(std::span<const std::span<const int64_t>> rows);
  // By tower. Valid until Apply.
  std::span<const TowerMemory> memory() const { return memory_; }
  // The variables that are reduced: the trained ones as ReducedTensors orders them.
  std::span<const int> reduced() const { return reduced_; }
  // gradients()[t][i]: what tower t computed for variable reduced()[i]; of a table its share.
  std::span<const std::vector<TensorView>> gradients() const { return trained_gradients_; }

  // Whether what Apply would take is well formed. INVALID_ARGUMENT naming the table and the rank of
  // the participant that sent rows which it cannot have.
  absl::Status Check(const GroupReducer& reduced) const;
  // Makes the next version on every tower: reduced.tensor(t, i) is the gradient of variable
  // reduced()[i] on tower t, of a table the shares of all; a statistic gets the value that its own
  // tower computed. Gradients are clipped first, those of tables as the rows that any tower names.
  void Apply(float learning_rate, const GroupReducer& reduced, const ClippingRule& clipping = {});

  // Of tower 0.
  const Variable& variable(size_t variable) const { return *towers_[0].variables[variable]; }
  std::span<const float> scalars() const { return scalars_; }
  // The same tower's values and slots, in the order of TensorsOf. Valid until Apply.
  std::vector<TensorView> StateOfTower0() const;

 private:
  struct Tower {
    std::vector<std::unique_ptr<Variable>> variables;
    std::vector<TensorView> values;
    std::vector<Tensor> rows;  // of tables, as memory() has them; of others nothing
    std::vector<Tensor> gradient_memory;
    std::vector<MutableTensorView> gradients;
  };

  Replicas(const ReplicasOptions& options, const VariableLayout& layout, OptimizerRules rules,
           ReplicaState state, TensorMaker make_tensor);
  Tower MakeTower(ReplicaState state) const;
  ReplicaState CopyOf(const ReplicaState& state) const;
  std::unique_ptr<Variable> MakeVariable(size_t variable, ReplicaState* state) const;
  // For a tensor that towers read or write.
  Tensor MakeTensor(DType dtype, const Shape& shape) const;
  // Of a trained table.
  RowShare ShareOf(size_t variable) const;
  bool IsTrained(size_t variable) const;
  bool IsTrainedTable(size_t variable) const;
  // Whether a step changes it.
  bool Changes(size_t variable) const;

  // The gradients of the trained tables, in their order.
  std::vector<IndexedSlices> MergedRows(const GroupReducer& reduced) const;
  void ApplyRows(float learning_rate, const IndexedSlices& rows, size_t variable, Tower* tower);
  void ApplyDense(float learning_rate, const GroupReducer& reduced);

  const ReplicasOptions options_;
  const VariableLayout& layout_;
  const TensorMaker make_tensor_;
  const OptimizerRules rules_;
  std::vector<const UpdateRule*> rule_of_;  // by variable; of rules_
  ThreadPool pool_;
  GlobalStep version_;
  std::vector<float> scalars_;
  std::vector<int> reduced_;
  int num_dense_ = 0;         // of reduced_: tables come after them
  std::vector<int> numbers_;  // by variable: its place in reduced_; -1: none
  std::vector<Tower> towers_;
  std::vector<TowerMemory> memory_;
  std::vector<std::vector<TensorView>> trained_gradients_;  // by tower
};

}  // namespace lockstep::worker
