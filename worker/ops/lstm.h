// A long short-term memory, as Keras's LSTM: with z = x K + h R + b,
//   i, f, o = sigmoid(z_i, z_f, z_o), c' = f c + i tanh(z_c), h' = o tanh(c').
// States: h, c. Variables: kernel [inputs, 4 units], recurrent kernel [units, 4 units] and bias
// [4 units], gates in the order i, f, c, o.
#pragma once

#include "worker/ops/recurrent.h"

namespace lockstep::worker {

struct LstmOptions : RecurrentOptions {
  static constexpr absl::string_view kKind = "lstm";
};

}  // namespace lockstep::worker
