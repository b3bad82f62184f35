// The order of the examples within a data epoch: pure functions of (seed, data epoch).
#pragma once

#include <cstdint>

#include "absl/types/span.h"

namespace lockstep::worker {

// How far an example may be moved to the front.
struct ShuffleWindow {
  // The window slides over the file: the example at each place is drawn from the next `size` ones
  // that are left. That is what a shuffle buffer of `size` examples gives; size 1 keeps the order
  // of the file, and size n is a uniform permutation of n examples.
  int64_t size = 1;
};

// Writes a permutation of 0 .. order.size() - 1.
void FillEpochOrder(uint64_t seed, uint64_t data_epoch, ShuffleWindow window,
                    absl::Span<int64_t> order);

}  // namespace lockstep::worker
