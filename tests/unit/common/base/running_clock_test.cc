#include "common/base/running_clock.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

// Looks five times a second meanwhile.
void Pass(absl::Duration time, const RunningClock& running, ManualClock* clock) {
  for (absl::Duration t; t < time; t += absl::Milliseconds(200)) {
    clock->Advance(absl::Milliseconds(200));
    running.Monotonic();
  }
}

TEST_CASE("a running clock counts all time but that in which the process stood still") {
  ManualClock clock;
  clock.Advance(absl::Seconds(7));
  const RunningClock running(&clock);
  const absl::Duration begin = running.Monotonic();
  Pass(absl::Seconds(10), running, &clock);
  CHECK(running.Monotonic() - begin == absl::Seconds(10));
  for (int stop = 0; stop < 2; ++stop) {
    const absl::Duration before = running.Monotonic();
    clock.Advance(absl::Seconds(30));
    CHECK(running.Monotonic() == before);
    Pass(absl::Seconds(10), running, &clock);
    CHECK(running.Monotonic() - before == absl::Seconds(10));
  }
  CHECK(running.Wall() == clock.Wall());
}

TEST_CASE("a running clock takes more than a second between two calls for a standstill") {
  ManualClock clock;
  const RunningClock running(&clock);
  clock.Advance(absl::Seconds(1));
  CHECK(running.Monotonic() == absl::Seconds(1));
  clock.Advance(absl::Seconds(1.2));
  CHECK(running.Monotonic() == absl::Seconds(1));
  CHECK(running.Monotonic() == absl::Seconds(1));
}

}  // namespace
}  // namespace lockstep
