// A batch of examples in memory: what the data path hands to a tower.
#pragma once

#include <optional>
#include <vector>

#include "common/tensor/tensor.h"

namespace lockstep::worker {

// Rows of examples that a tower's device already has.
struct LoadedRows {
  TensorView host_features;  // the same rows in host memory
  TensorView features;       // on the device
  TensorView labels;
  std::vector<TensorView> state_inputs;  // one row per sequence
};

struct Batch {
  Tensor features;  // float32 [n, ...example shape], scaled and augmented
  Tensor labels;  // int32 [n] or [n, time] for a classifier; float32 [n, outputs] for a regression
  // By state input of the model: float32 [n, units].
  std::vector<Tensor> states = {};
  // In place of all these, which are empty then. Does not own.
  std::optional<LoadedRows> loaded = std::nullopt;

  // In host memory.
  TensorView feature_rows() const { return loaded ? loaded->host_features : features.view(); }
  int64_t size() const { return loaded ? loaded->features.shape.dim(0) : features.shape().dim(0); }
};

}  // namespace lockstep::worker
