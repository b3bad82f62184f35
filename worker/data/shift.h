// Augmentation by shifting images by whole pixels.
#pragma once

#include <cstdint>

#include "common/base/philox.h"

namespace lockstep::worker {

// Where the content moves: down by dy rows, right by dx columns.
struct Shift {
  int64_t dy = 0;
  int64_t dx = 0;
};

// Draws a shift for each position of the stream: each direction uniform in [-most, most], a
// function of (seed, position) alone. Thread-safe.
class ShiftSource {
 public:
  // most >= 0, in pixels.
  ShiftSource(uint64_t seed, int64_t most);

  Shift At(int64_t position) const;

 private:
  Philox random_;
  int64_t most_;
};

}  // namespace lockstep::worker
