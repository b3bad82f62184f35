#include "ps/service/serial_thread.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <thread>
#include <vector>

#include "absl/synchronization/notification.h"

namespace lockstep::ps {
namespace {

TEST_CASE("Work is done in its order, and all of it before the thread goes") {
  std::vector<int> done;
  {
    SerialThread thread;
    for (int i = 0; i < SerialThread::kMaxWaiting; ++i) {
      CHECK(thread.TryDo([&done, i] { done.push_back(i); }));
    }
  }
  REQUIRE(done.size() == SerialThread::kMaxWaiting);
  for (int i = 0; i < SerialThread::kMaxWaiting; ++i) CHECK(done[i] == i);
}

TEST_CASE("Work may ask for more work") {
  int depth = 0;
  bool is_taken = false;
  {
    SerialThread thread;
    CHECK(thread.TryDo([&] {
      ++depth;
      is_taken = thread.TryDo([&] { ++depth; });
    }));
  }
  CHECK(is_taken);
  CHECK(depth == 2);
}

TEST_CASE("Beyond its bound work is refused, and taken again once there is room") {
  absl::Notification started, go_on;
  std::atomic<int> done = 0;
  SerialThread thread;
  REQUIRE(thread.TryDo([&] {
    started.Notify();
    go_on.WaitForNotification();
  }));
  started.WaitForNotification();
  size_t taken = 0;
  while (taken < 1000 && thread.TryDo([&] { ++done; })) ++taken;
  CHECK(taken == SerialThread::kMaxWaiting);
  go_on.Notify();
  absl::Notification last;
  while (!thread.TryDo([&] { last.Notify(); })) std::this_thread::yield();
  last.WaitForNotification();
  CHECK(done == static_cast<int>(taken));
}

}  // namespace
}  // namespace lockstep::ps
