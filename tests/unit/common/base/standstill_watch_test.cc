#include "common/base/standstill_watch.h"

#include <catch2/catch.hpp>

namespace lockstep {
namespace {

TEST_CASE("a process that looks several times a second does not stand still") {
  StandstillWatch watch(absl::Seconds(7));
  absl::Duration now = absl::Seconds(7);
  for (int look = 0; look < 20; ++look) {
    now += absl::Milliseconds(200);
    CHECK(watch.Measure(now) == absl::ZeroDuration());
  }
  CHECK(watch.Measure(now + absl::Seconds(1)) == absl::ZeroDuration());
}

TEST_CASE("the time between two looks that are far apart is a standstill, once") {
  StandstillWatch watch(absl::Seconds(7));
  CHECK(watch.Measure(absl::Seconds(8.2)) == absl::Seconds(1.2));
  CHECK(watch.Measure(absl::Seconds(8.2)) == absl::ZeroDuration());
  CHECK(watch.Measure(absl::Seconds(60.2)) == absl::Seconds(52));
  CHECK(watch.Measure(absl::Seconds(60.4)) == absl::ZeroDuration());
}

}  // namespace
}  // namespace lockstep
