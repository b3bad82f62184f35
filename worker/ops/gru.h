// A gated recurrent unit, as Keras's GRU with reset_after: with x' = x K + b0 and h' = h R + b1,
//   z, r = sigmoid(x'_z + h'_z, x'_r + h'_r), n = tanh(x'_h + r h'_h), h = z h + (1 - z) n.
// State: h. Variables: kernel [inputs, 3 units], recurrent kernel [units, 3 units] and bias
// [2, 3 units], gates in the order z, r, h.
#pragma once

#include "worker/ops/recurrent.h"

namespace lockstep::worker {

struct GruOptions : RecurrentOptions {
  static constexpr absl::string_view kKind = "gru";
};

}  // namespace lockstep::worker
