// The layers that end a graph: which layers are losses, and what they ask of their input.
#pragma once

#include "absl/status/statusor.h"
#include "common/model/inferred_layer.h"
#include "common/tensor/shape.h"
#include "proto/model.pb.h"

namespace lockstep {

bool IsLoss(const LayerDef& layer);
// Whether it is a loss that compares with the data's labels.
bool TakesLabels(const LayerDef& layer);

// Of a loss (IsLoss): as InferLayer. It has no output.
absl::StatusOr<InferredLayer> InferLoss(const LayerDef& layer, const Shape& input);

}  // namespace lockstep
