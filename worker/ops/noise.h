// Standard normal numbers: a function of (random_key, name, index of the element in the batch). No
// inputs and no variables; the same in training and inference.
#pragma once

#include <string>

#include "worker/ops/op.h"

namespace lockstep::worker {

struct NoiseOptions : OpOptions {
  static constexpr absl::string_view kKind = "noise";
  std::string name;      // of the layer: layers of one model draw independently
  int64_t elements = 1;  // per example
};

}  // namespace lockstep::worker
