#include "worker/service/background_call.h"

#include <catch2/catch.hpp>
#include <memory>

#include "common/base/monotonic_wait.h"

namespace lockstep::worker {
namespace {

TEST_CASE("requests do not wait for a call, and those of one call's time are one call") {
  MonotonicNotification has_begun, may_end, is_over;
  int calls = 0;
  BackgroundCall call([&] {
    if (++calls == 2) return is_over.Notify();
    has_begun.Notify();
    may_end.WaitForNotification();
  });
  call.Request();
  has_begun.WaitForNotification();
  for (int i = 0; i < 5; ++i) call.Request();
  may_end.Notify();
  is_over.WaitForNotification();
  CHECK(calls == 2);
}

TEST_CASE("its end waits for a call under way") {
  MonotonicNotification has_begun;
  bool is_over = false;
  {
    BackgroundCall call([&] {
      has_begun.Notify();
      is_over = true;
    });
    call.Request();
    has_begun.WaitForNotification();
  }
  CHECK(is_over);
}

}  // namespace
}  // namespace lockstep::worker
