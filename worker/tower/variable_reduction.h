// The reduction of one variable over towers by an op: its operands, and when it is over.
#pragma once

#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "absl/status/statusor.h"
#include "worker/device/stream.h"
#include "worker/ops/gradient_op.h"
#include "worker/tower/tower_reducer.h"

namespace lockstep::worker {

// Used by one thread. Stays where it is, and outlives the work that it has enqueued.
class VariableReduction {
 public:
  // `op` outlives this.
  VariableReduction(GradientOp* op, std::unique_ptr<Event> ready)
      : op_(op), ready_(std::move(ready)) {}

  // Enqueues the op. Its inputs are `first`, unless null, then the view of each tower, which the
  // stream waits for; its output is `to`.
  absl::StatusOr<TowerGradient> Enqueue(const TensorView* first,
                                        std::span<const TowerGradient> by_tower,
                                        const MutableTensorView& to, Stream* stream);

 private:
  GradientOp* op_;
  std::unique_ptr<Event> ready_;
  std::vector<TensorView> inputs_;
  MutableTensorView output_;
  GradientOp::Args args_;
};

}  // namespace lockstep::worker
