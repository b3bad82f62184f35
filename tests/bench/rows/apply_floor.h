// A pass over the memory that an optimizer's step reads and writes, with as little arithmetic as
// possible: what the speed of memory allows. Uses nothing of Lockstep's.
#pragma once

#include <array>
#include <cstddef>

#include "tests/bench/peers/huge_pages.h"

namespace lockstep::bench {

// Arrays of `elements` float32 each. Not thread-safe.
class ApplyFloor {
 public:
  static constexpr size_t kGradients = 4;
  static constexpr size_t kMostSlots = 3;

  ApplyFloor(size_t elements, size_t slots, int threads);

  // Adds the sum of the gradients to the value and to each slot, in place.
  void Pass();

 private:
  using Array = HugePageVector<float>;

  const size_t elements_;
  const size_t num_slots_;
  const int threads_;
  std::array<Array, kGradients> gradients_;
  std::array<Array, kMostSlots> slots_;  // the first num_slots_ of them
  Array value_;
};

}  // namespace lockstep::bench
