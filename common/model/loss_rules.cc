#include "common/model/loss_rules.h"

#include "common/base/status_macros.h"
#include "common/model/size_rules.h"

namespace lockstep {
namespace {

absl::Status RequireScores(const Shape& input, int64_t fewest) {
  if (input.dim(input.rank() - 1) >= fewest) return absl::OkStatus();
  return Invalid(
      "expected at least ", fewest, " scores, got ", input.ToString(),
      ". Remedy: one unit per class in the layer before it; for one number to predict use l2_loss");
}

absl::Status CheckTarget(const SigmoidCrossEntropy& def) {
  if (def.target() >= 0 && def.target() <= 1) return absl::OkStatus();
  return Invalid("target: expected a number from 0 to 1, got ", def.target(),
                 ". Remedy: correct it, or leave it out to take the labels of the data");
}

}  // namespace

bool IsLoss(const LayerDef& layer) {
  return layer.has_softmax_cross_entropy() || layer.has_l2_loss() ||
         layer.has_sigmoid_cross_entropy();
}

bool TakesLabels(const LayerDef& layer) {
  return IsLoss(layer) && !layer.sigmoid_cross_entropy().has_target();
}

absl::StatusOr<InferredLayer> InferLoss(const LayerDef& layer, const Shape& input) {
  const bool may_be_sequence = layer.has_softmax_cross_entropy() && input.rank() == 2;
  if (!may_be_sequence) LOCKSTEP_RETURN_IF_ERROR(RequireVector(input));
  LOCKSTEP_RETURN_IF_ERROR(RequireScores(input, layer.has_softmax_cross_entropy() ? 2 : 1));
  LOCKSTEP_RETURN_IF_ERROR(CheckTarget(layer.sigmoid_cross_entropy()));
  return InferredLayer();
}

}  // namespace lockstep
