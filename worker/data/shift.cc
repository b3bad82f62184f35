#include "worker/data/shift.h"

namespace lockstep::worker {

ShiftSource::ShiftSource(uint64_t seed, int64_t most) : random_(seed, "data/shift"), most_(most) {}

Shift ShiftSource::At(int64_t position) const {
  const Philox::Block block = random_.At(static_cast<uint64_t>(position));
  const uint64_t choices = static_cast<uint64_t>(2 * most_ + 1);
  const auto draw = [&](uint32_t bits) {
    return static_cast<int64_t>(bits * choices >> 32) - most_;
  };
  return {draw(block[0]), draw(block[1])};
}

}  // namespace lockstep::worker
