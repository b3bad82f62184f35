// In training each element is kept with probability 1 - rate and scaled by 1 / (1 - rate); in
// inference nothing happens. Which ones are kept is a function of (random_key, name, index of the
// element in the batch).
#pragma once

#include <string>

#include "worker/ops/op.h"

namespace lockstep::worker {

struct DropoutOptions : OpOptions {
  static constexpr absl::string_view kKind = "dropout";
  std::string name;      // of the layer: layers of one model drop independently
  float rate = 0;        // 0 <= rate < 1
  int64_t elements = 1;  // per example
};

}  // namespace lockstep::worker
