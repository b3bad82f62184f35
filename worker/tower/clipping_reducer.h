// Clips what another reducer, or the only tower, gives: the gradients of trained variables, never
// statistics. Norms run in the order of the variables.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/device/device.h"
#include "worker/ops/gradient_op.h"
#include "worker/ops/op_table.h"
#include "worker/tower/tower_reducer.h"

namespace lockstep::worker {

class ClippingReducer : public TowerReducer {
 public:
  // `inner` null: there is one tower, whose gradients are clipped where they are. The rest outlives
  // the reducer.
  static absl::StatusOr<std::unique_ptr<ClippingReducer>> Create(
      std::unique_ptr<TowerReducer> inner, const ClippingRule& rule, const ModelGraph& graph,
      Device* device, const OpTable& ops, OpContext* context, Stream* stream);

  // A global norm leaves the gradients open until Finish.
  absl::StatusOr<TowerGradient> Reduce(int variable, std::span<const TowerGradient> by_tower,
                                       const MutableTensorView& to) override;
  absl::StatusOr<Event*> Finish() override;

 private:
  struct Variable {
    bool trained = false;
    std::unique_ptr<Event> ready;
    MutableTensorView gradient;
    GradientOp::Args args;
  };

  ClippingReducer(std::unique_ptr<TowerReducer> inner, bool all_together, Stream* stream)
      : inner_(std::move(inner)), all_together_(all_together), stream_(stream) {}

  const std::unique_ptr<TowerReducer> inner_;
  const bool all_together_;
  Stream* const stream_;
  std::unique_ptr<GradientOp> op_;
  std::vector<Variable> variables_;
  // Of a global norm.
  std::vector<MutableTensorView> together_;
  GradientOp::Args args_;
  std::unique_ptr<Event> ready_;
};

}  // namespace lockstep::worker
