#include "common/base/clock.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

TEST_CASE("A manual clock moves when told") {
  ManualClock clock;
  CHECK(clock.Monotonic() == absl::ZeroDuration());
  clock.Advance(absl::Seconds(3));
  CHECK(clock.Monotonic() == absl::Seconds(3));
  CHECK(clock.Wall() == absl::UnixEpoch() + absl::Seconds(3));
}

TEST_CASE("The real clock does not go back and knows the year") {
  const Clock* clock = Clock::Real();
  const absl::Duration first = clock->Monotonic();
  CHECK(clock->Monotonic() >= first);
  CHECK(clock->Wall() > absl::FromUnixSeconds(1600000000));
}

}  // namespace
}  // namespace lockstep
