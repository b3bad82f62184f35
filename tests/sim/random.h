// All chance of a simulation comes from one seed.
#pragma once

#include <cstdint>
#include <random>

#include "absl/time/time.h"

namespace lockstep::sim {

class Random {
 public:
  explicit Random(uint64_t seed) : engine_(seed) {}

  // 0 .. bound - 1; the little bias does not matter here.
  uint64_t Below(uint64_t bound) { return engine_() % bound; }
  int Between(int least, int most) {
    return least + static_cast<int>(Below(static_cast<uint64_t>(most - least + 1)));
  }
  bool Chance(double probability) {
    return static_cast<double>(engine_() >> 11) * 0x1p-53 < probability;
  }
  absl::Duration Between(absl::Duration least, absl::Duration most) {
    return least + absl::Nanoseconds(static_cast<int64_t>(
                       Below(static_cast<uint64_t>(absl::ToInt64Nanoseconds(most - least)) + 1)));
  }

 private:
  std::mt19937_64 engine_;
};

}  // namespace lockstep::sim
