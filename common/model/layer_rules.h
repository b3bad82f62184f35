// Checks the inputs of each kind of layer and infers its variables and output: one function per
// kind behind InferLayer.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/inferred_layer.h"
#include "common/tensor/shape.h"
#include "proto/model.pb.h"

namespace lockstep {

// "conv2d"; "" for a layer without a kind.
absl::string_view KindName(const LayerDef& layer);
// The kinds that a layer may have, as a model file spells them.
std::vector<std::string> KindNames();

// Checks `layer` against the shapes of its inputs and fills in its defaults. The error names the
// field, the expected and the given value, not the layer.
absl::StatusOr<InferredLayer> InferLayer(LayerDef& layer, absl::Span<const Shape> inputs);

}  // namespace lockstep
