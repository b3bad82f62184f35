// The options of a recurrent layer. An example is a sequence of `time` steps of `inputs` numbers.
// Inputs of the op: the sequences [batch, time, inputs] and, with `initial_states`, each state
// before the first step [batch, units]. Without it, states begin at zero. Output: [batch, time,
// units], or the last step's [batch, units].
#pragma once

#include "worker/ops/op.h"

namespace lockstep::worker {

struct RecurrentOptions : OpOptions {
  int64_t time = 1;
  int64_t inputs = 1;
  int64_t units = 1;
  bool bias = true;
  bool return_sequences = false;
  bool initial_states = false;
};

}  // namespace lockstep::worker
