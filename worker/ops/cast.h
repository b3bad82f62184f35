// Another type of the same numbers.
#pragma once

#include <cstdint>

#include "worker/ops/op.h"

namespace lockstep::worker {

// Rounds to nearest. The gradient is cast back. `type` is that of the input and its gradient.
struct CastOptions : OpOptions {
  static constexpr char kKind[] = "cast";

  DType to = DType::kFloat32;  // of the output and its gradient
  int64_t elements = 0;        // of each example
};

}  // namespace lockstep::worker
