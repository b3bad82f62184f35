// Stands for a layer of any size in trials of what happens to gradients: the output is the input,
// and the gradients of its variables are written without being computed. All elements of a
// variable's gradient are one number in [-1, 1), a function of (random_key, name, the variable's
// place).
//
// Variables: any number, of any shapes; of tables the rows that the batch looks up.
#pragma once

#include <string>

#include "absl/time/time.h"
#include "worker/ops/op.h"

namespace lockstep::worker {

struct SyntheticOptions : OpOptions {
  static constexpr absl::string_view kKind = "synthetic";
  std::string name;      // of the layer
  int64_t elements = 1;  // of the input, per example
  // Backward writes the gradients and returns at the next multiple of this on Clock::Real()'s
  // Monotonic(), which all processes of a machine share. Zero: as soon as they are written.
  absl::Duration release_every;
};

}  // namespace lockstep::worker
