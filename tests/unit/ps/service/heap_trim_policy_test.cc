#include "ps/service/heap_trim_policy.h"

#include <catch2/catch.hpp>

namespace lockstep::ps {
namespace {

constexpr absl::Duration kPoll = absl::Milliseconds(200);

struct Fixture {
  // Lets so much time pass without activity; returns how often a trim was due.
  int Pass(absl::Duration length) {
    int due = 0;
    for (const absl::Duration end = now + length; now < end; now += kPoll) {
      due += policy.IsDue(activity, now) ? 1 : 0;
    }
    return due;
  }

  HeapTrimPolicy policy;
  PsActivity activity;
  absl::Duration now = absl::Seconds(100);
};

TEST_CASE("variables that were dropped are trimmed once, a moment later") {
  Fixture f;
  f.activity.own = {.has_variables = true, .held_bytes = 1000};
  CHECK(f.Pass(absl::Seconds(1)) == 0);
  f.activity.own = {};
  CHECK(f.Pass(absl::Milliseconds(800)) == 0);
  CHECK(f.Pass(absl::Seconds(1)) == 1);
  CHECK(f.Pass(absl::Hours(2)) == 0);
}

TEST_CASE("the heap is not trimmed while the other shard of the process trains") {
  Fixture f;
  f.activity.own.has_variables = true;
  f.activity.copy.has_variables = true;
  f.Pass(absl::Seconds(1));
  f.activity.copy = {};
  for (int step = 1; step < 100; ++step) {
    f.activity.own.shard_step = GlobalStep(step);
    CHECK(f.Pass(absl::Seconds(2)) == 0);
  }
}

TEST_CASE("each kind of activity says that a step is made") {
  Fixture f;
  f.activity.own.has_variables = true;
  const auto keeps_busy = [&](auto change) {
    for (int i = 1; i < 20; ++i) {
      change(i);
      if (f.Pass(absl::Seconds(10)) > 0) return false;
    }
    return true;
  };
  CHECK(keeps_busy([&](int i) { f.activity.own.pushes = i; }));
  CHECK(keeps_busy([&](int i) { f.activity.own.held_bytes = i; }));
  CHECK(keeps_busy([&](int i) { f.activity.own.answered_pulls = i; }));
  CHECK(keeps_busy([&](int i) { f.activity.own.waiting_pulls = i; }));
  CHECK(keeps_busy([&](int i) { f.activity.own.state_messages = i; }));
  CHECK(keeps_busy([&](int i) { f.activity.copy.pushes = i; }));
}

TEST_CASE("a job that stands still is trimmed once, one of long steps more and more seldom") {
  Fixture f;
  f.activity.own.has_variables = true;
  CHECK(f.Pass(absl::Seconds(14)) == 0);
  CHECK(f.Pass(absl::Hours(1)) == 1);
  // Its steps take a minute, for a week.
  int due = 0;
  for (int step = 1; step < 7 * 24 * 60; ++step) {
    f.activity.own.shard_step = GlobalStep(step);
    due += f.Pass(absl::Minutes(1));
  }
  CHECK(due == 1);
  f.activity.own = {};
  CHECK(f.Pass(absl::Seconds(2)) == 1);
  f.activity.own.has_variables = true;
  CHECK(f.Pass(absl::Seconds(16)) == 1);
}

TEST_CASE("a ps that has not begun has nothing to trim") {
  Fixture f;
  CHECK(f.Pass(absl::Hours(1)) == 0);
}

}  // namespace
}  // namespace lockstep::ps
