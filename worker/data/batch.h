// A batch of examples in memory: what the data path hands to a tower.
#pragma once

#include "common/tensor/tensor.h"

namespace lockstep::worker {

struct Batch {
  Tensor features;  // float32 [n, ...example shape], scaled and augmented
  Tensor labels;    // int32 [n] for a classifier; float32 [n, outputs] for a regression
  int64_t size() const { return features.shape().dim(0); }
};

}  // namespace lockstep::worker
