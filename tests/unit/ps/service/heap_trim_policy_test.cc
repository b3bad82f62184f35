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

TEST_CASE("a job that stands still is trimmed once, one of long steps at most once an hour") {
  Fixture f;
  f.activity.own.has_variables = true;
  CHECK(f.Pass(absl::Seconds(14)) == 0);
  CHECK(f.Pass(absl::Hours(1)) == 1);
  // Its steps take a minute, for a week. Before the first hour is over it is trimmed more often.
  constexpr int kHours = 7 * 24;
  int due = 0;
  for (int step = 1; step < kHours * 60; ++step) {
    f.activity.own.shard_step = GlobalStep(step);
    due += f.Pass(absl::Minutes(1));
  }
  CHECK(due == kHours + 5);
  f.activity.own = {};
  CHECK(f.Pass(absl::Seconds(2)) == 1);
  f.activity.own.has_variables = true;
  CHECK(f.Pass(absl::Seconds(16)) == 1);
}

// Each pushes for a second, and is followed by less quiet than the pauses between trims grow to.
TEST_CASE("what each of many bursts has freed is given back, in at most an hour") {
  Fixture f;
  f.activity.own.has_variables = true;
  const auto burst = [&](absl::Duration quiet) {
    ++f.activity.own.pushes;
    f.Pass(absl::Seconds(1));
    return f.Pass(quiet);
  };
  CHECK(burst(absl::Seconds(20)) == 1);
  // Not at once again, but soon.
  int bursts = 1;
  while (burst(absl::Seconds(20)) == 0 && bursts < 10) ++bursts;
  CHECK(bursts == 2);
  for (int i = 0; i < 1000; ++i) burst(absl::Seconds(20));
  int until_next = 1;
  while (burst(absl::Seconds(20)) == 0 && until_next < 1000) ++until_next;
  CHECK(until_next * absl::Seconds(21) <= absl::Hours(1) + absl::Seconds(21));
  // One that comes later than that does not wait.
  CHECK(f.Pass(absl::Hours(2)) <= 1);
  CHECK(burst(absl::Seconds(20)) == 1);
}

TEST_CASE("a ps that has not begun has nothing to trim") {
  Fixture f;
  CHECK(f.Pass(absl::Hours(1)) == 0);
}

}  // namespace
}  // namespace lockstep::ps
