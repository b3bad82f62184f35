// A batch of examples in memory: what the data path hands to a tower.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "common/tensor/tensor.h"

namespace lockstep::worker {

// Rows of examples that a tower's device already has.
struct LoadedRows {
  TensorView host_features;  // the same rows in host memory
  TensorView features;       // on the device
  TensorView labels;
  std::vector<TensorView> state_inputs;  // one row per sequence
  std::span<const int64_t> examples;     // numbers, of training data
  // They are elsewhere in nearly every step, as the minibatches of a load are. A tower then copies
  // them to its own place on the device, so that one graph serves all its steps.
  bool place_varies = false;
};

struct Batch {
  Tensor features;  // float32 [n, ...example shape], scaled and augmented
  Tensor labels;  // int32 [n] or [n, time] for a classifier; float32 [n, outputs] for a regression
  // By state input of the model: float32 [n, units].
  std::vector<Tensor> states = {};
  // Of training data the number of each example, from 0 through the files that the worker reads.
  std::vector<int64_t> examples = {};
  // In place of all these, which are empty then. Does not own.
  std::optional<LoadedRows> loaded = std::nullopt;

  // In host memory.
  TensorView feature_rows() const { return loaded ? loaded->host_features : features.view(); }
  std::span<const int64_t> example_numbers() const { return loaded ? loaded->examples : examples; }
  int64_t size() const { return loaded ? loaded->features.shape.dim(0) : features.shape().dim(0); }
};

}  // namespace lockstep::worker
