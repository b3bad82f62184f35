#include "ps/service/orphan_watch.h"

#include <catch2/catch.hpp>

#include "common/base/clock.h"
#include "common/base/exit_code.h"
#include "common/base/running_clock.h"

namespace lockstep::ps {
namespace {

TEST_CASE("A ps is an orphan when its chief has been silent for as long as was said") {
  OrphanWatch watch(absl::Seconds(30));
  // No chief has called: --start_timeout counts.
  CHECK_FALSE(watch.IsOrphan(absl::Seconds(100)));
  watch.Called(absl::Seconds(100));
  CHECK_FALSE(watch.IsOrphan(absl::Seconds(129)));
  CHECK(watch.IsOrphan(absl::Seconds(130)));
  watch.Called(absl::Seconds(140));
  CHECK_FALSE(watch.IsOrphan(absl::Seconds(169)));
  CHECK(ExitCodeFor(watch.Ended()) == ExitCode::kPeersLost);
  CHECK(watch.Ended().message() ==
        "no chief has called for 30 s (--orphan_timeout). Remedy: start the cluster again, the "
        "chief with --resume");
}

TEST_CASE("A ps that was stopped does not take its own absence for its chief's") {
  OrphanWatch watch(absl::Seconds(30));
  ManualClock clock;
  const RunningClock running(&clock);
  const auto is_orphan_after = [&](absl::Duration time) {
    for (absl::Duration t; t < time; t += absl::Milliseconds(200)) {
      clock.Advance(absl::Milliseconds(200));
      (void)watch.IsOrphan(running.Monotonic());
    }
    return watch.IsOrphan(running.Monotonic());
  };
  watch.Called(running.Monotonic());
  CHECK_FALSE(is_orphan_after(absl::Seconds(10)));
  clock.Advance(absl::Seconds(500));
  CHECK_FALSE(watch.IsOrphan(running.Monotonic()));
  // 10 s of silence have been seen, and 20 s more must be.
  CHECK_FALSE(is_orphan_after(absl::Seconds(19)));
  CHECK(is_orphan_after(absl::Seconds(1)));
}

TEST_CASE("A chief that waits for a long restore or save is not silent") {
  OrphanWatch watch(absl::Seconds(30));
  watch.BeginWork(absl::Seconds(0));
  watch.BeginWork(absl::Seconds(10));
  watch.EndWork(absl::Seconds(50));
  CHECK_FALSE(watch.IsOrphan(absl::Seconds(600)));
  watch.EndWork(absl::Seconds(600));
  CHECK_FALSE(watch.IsOrphan(absl::Seconds(629)));
  CHECK(watch.IsOrphan(absl::Seconds(630)));
}

TEST_CASE("Without a limit a ps waits for its next chief for ever") {
  OrphanWatch watch(absl::InfiniteDuration());
  watch.Called(absl::Seconds(1));
  CHECK_FALSE(watch.IsOrphan(absl::Hours(1000000)));
}

TEST_CASE("A ps that is told to end serves a moment longer, and while it saves") {
  const absl::Duration told = absl::Seconds(100);
  OrphanWatch without_chief(absl::InfiniteDuration());
  without_chief.Signalled(told);
  CHECK_FALSE(without_chief.MayBeSaved(told));
  OrphanWatch watch(absl::InfiniteDuration());
  watch.Called(absl::Seconds(1));
  watch.Signalled(told);
  CHECK(watch.MayBeSaved(told + absl::Milliseconds(900)));
  CHECK_FALSE(watch.MayBeSaved(told + absl::Seconds(1)));
  watch.BeginWork(told + absl::Milliseconds(500));
  CHECK(watch.MayBeSaved(told + absl::Seconds(19)));
  CHECK_FALSE(watch.MayBeSaved(told + absl::Seconds(20)));
  // A chief that goes on may save again and again.
  watch.EndWork(told + absl::Seconds(5));
  CHECK_FALSE(watch.MayBeSaved(told + absl::Seconds(5)));
}

TEST_CASE("A chief that is told to end in a save makes its last one after that") {
  const absl::Duration told = absl::Seconds(100);
  OrphanWatch watch(absl::InfiniteDuration());
  watch.BeginWork(absl::Seconds(99));
  watch.Signalled(told);
  watch.EndWork(told + absl::Seconds(5));
  CHECK(watch.MayBeSaved(told + absl::Milliseconds(5900)));
  watch.BeginWork(told + absl::Milliseconds(5900));
  CHECK(watch.MayBeSaved(told + absl::Seconds(10)));
  watch.EndWork(told + absl::Seconds(10));
  CHECK_FALSE(watch.MayBeSaved(told + absl::Seconds(10)));
}

}  // namespace
}  // namespace lockstep::ps
