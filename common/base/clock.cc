#include "common/base/clock.h"

#include <ctime>

#include "absl/time/clock.h"

namespace lockstep {
namespace {

class RealClock final : public Clock {
 public:
  absl::Duration Monotonic() const override {
    timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return absl::Seconds(now.tv_sec) + absl::Nanoseconds(now.tv_nsec);
  }
  absl::Time Wall() const override { return absl::Now(); }
};

}  // namespace

const Clock* Clock::Real() {
  static const RealClock* clock = new RealClock;
  return clock;
}

}  // namespace lockstep
