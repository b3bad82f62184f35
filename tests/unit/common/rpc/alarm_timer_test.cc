#include "common/rpc/alarm_timer.h"

#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/base/clock.h"

namespace lockstep::rpc {
namespace {

TEST_CASE("a timer calls each function once, not before its time, from within another, too") {
  EventQueue queue;
  AlarmTimer timer(&queue);
  const absl::Duration start = Clock::Real()->Monotonic();
  absl::Notification second;
  absl::Duration first_at, second_at;
  timer.After(absl::Milliseconds(20), [&] {
    first_at = Clock::Real()->Monotonic() - start;
    timer.After(absl::Milliseconds(10), [&] {
      second_at = Clock::Real()->Monotonic() - start;
      second.Notify();
    });
  });
  second.WaitForNotification();
  CHECK(first_at >= absl::Milliseconds(20));
  CHECK(second_at >= absl::Milliseconds(30));
}

TEST_CASE("what is not due when a timer goes is destroyed without a call") {
  EventQueue queue;
  const auto kept = std::make_shared<int>(0);
  {
    AlarmTimer timer(&queue);
    for (int i = 0; i < 3; ++i) {
      timer.After(absl::Hours(1), [kept] { FAIL("called before its time"); });
    }
    CHECK(kept.use_count() == 4);
  }
  CHECK(kept.use_count() == 1);
}

}  // namespace
}  // namespace lockstep::rpc
