// A model as a line of JSON, for peers that build the same network from it.
#pragma once

#include <nlohmann/json.hpp>

#include "absl/status/statusor.h"
#include "common/model/graph.h"

namespace lockstep::bench {

// {"input_shape": [...], "classes": n, "layers": [{"kind": "conv2d", "inputs": [0], "channels": 1,
// "filters": 16, "kernel": [3, 3], "strides": [1, 1], "padding": "SAME"}, ...]}, the loss left out.
// `inputs` counts the network's own input as 0 and the first layer as 1. UNIMPLEMENTED for a layer
// that peers do not know.
absl::StatusOr<nlohmann::json> NetworkJson(const ModelGraph& graph);

}  // namespace lockstep::bench
