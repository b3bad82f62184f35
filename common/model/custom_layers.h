// Kinds of layers that this project does not have: LayerDef.custom, by its type. Code that is
// linked into every program that builds models adds them.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "absl/types/span.h"
#include "common/model/inferred_layer.h"
#include "common/tensor/shape.h"
#include "proto/custom.pb.h"

namespace lockstep {

// Checks the parameters against the shapes of the inputs, zero or more. The error
// names the field, what was expected and what was got, not the layer.
using CustomLayerRule = absl::StatusOr<InferredLayer> (*)(const CustomKind& kind,
                                                          absl::Span<const Shape> inputs);

// Before main; each type once.
void AddCustomLayer(std::string type, CustomLayerRule rule);

// Null: there is no such layer.
CustomLayerRule FindCustomLayer(absl::string_view type);
// Sorted.
std::vector<std::string> CustomLayerTypes();

}  // namespace lockstep
