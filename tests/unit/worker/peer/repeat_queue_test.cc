#include "worker/peer/repeat_queue.h"

#include <catch2/catch.hpp>

namespace lockstep::worker {
namespace {

using Messages = std::vector<int>;

TEST_CASE("pauses of a member double to a second until it takes a message") {
  RepeatQueue<int> queue(2);
  absl::Duration now = absl::Seconds(3);
  for (const int expected : {20, 40, 80, 160, 320, 640, 1000, 1000}) {
    const absl::Duration pause = queue.Add(1, 7, now);
    CHECK(pause == absl::Milliseconds(expected));
    now += pause;
    CHECK(queue.Take(1) == Messages{7});
  }
  CHECK(queue.Add(0, 5, now) == absl::Milliseconds(20));
  CHECK(queue.OnAnswered(1).empty());
  CHECK(queue.Add(1, 7, now) == absl::Milliseconds(20));
}

TEST_CASE("messages that were in flight together wait for the end of one pause") {
  RepeatQueue<int> queue(1);
  CHECK(queue.Add(0, 1, absl::Seconds(3)) == absl::Milliseconds(20));
  CHECK(queue.Add(0, 2, absl::Seconds(3) + absl::Milliseconds(15)) == absl::Milliseconds(5));
  CHECK(queue.Take(0) == Messages{1, 2});
  CHECK(queue.Take(0).empty());
}

TEST_CASE("a member that takes a message gets those that wait for it") {
  RepeatQueue<int> queue(2);
  queue.Add(0, 1, absl::Seconds(3));
  queue.Add(0, 2, absl::Seconds(3));
  queue.Add(1, 3, absl::Seconds(3));
  CHECK(queue.OnAnswered(0) == Messages{1, 2});
  CHECK(queue.Take(1) == Messages{3});
}

TEST_CASE("at the end what waits for any member is given up") {
  RepeatQueue<int> queue(2);
  queue.Add(1, 3, absl::Seconds(3));
  queue.Add(0, 1, absl::Seconds(3));
  CHECK(queue.TakeAll() == Messages{1, 3});
  CHECK(queue.TakeAll().empty());
}

}  // namespace
}  // namespace lockstep::worker
