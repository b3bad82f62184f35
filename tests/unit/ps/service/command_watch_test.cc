#include "ps/service/command_watch.h"

#include <catch2/catch.hpp>
#include <memory>
#include <optional>

#include "common/base/limits.h"
#include "tests/support/manual_time.h"

namespace lockstep::ps {
namespace {

using Got = std::shared_ptr<std::optional<absl::StatusOr<WatchCommandReply>>>;

struct Fixture {
  Fixture() { watch.Start(&time); }
  ~Fixture() { watch.Stop(); }

  void Renew(uint64_t term, uint64_t chief, absl::Duration length = absl::Seconds(2)) {
    watch.Renew({.term = Term(term), .chief = Incarnation(chief), .length = length});
  }
  Got Watch(uint64_t term, uint64_t caller = 1) {
    WatchCommandRequest request;
    request.set_term(term);
    request.set_caller(caller);
    Got got = std::make_shared<Got::element_type>();
    watch.Watch(request, [got](absl::StatusOr<WatchCommandReply> reply) {
      REQUIRE_FALSE(got->has_value());
      *got = std::move(reply);
    });
    return got;
  }
  static CommandStatus::State StateOf(const Got& got) { return (**got)->command().state(); }

  test::ManualTime time;
  CommandWatch watch{&time};
};

TEST_CASE("a standby hears the moment that the lease ends, however often that was renewed") {
  Fixture f;
  f.Renew(3, 1);
  const Got got = f.Watch(3);
  for (int i = 0; i < 10; ++i) {
    f.time.Advance(absl::Milliseconds(1500));
    f.Renew(3, 1);
  }
  f.time.Advance(absl::Milliseconds(1990));
  CHECK_FALSE(got->has_value());
  f.time.Advance(absl::Milliseconds(1000));  // the timer that was set before looks again
  f.time.Advance(absl::Milliseconds(2));
  REQUIRE(got->has_value());
  CHECK(Fixture::StateOf(got) == CommandStatus::EXPIRED);
}

TEST_CASE("a shorter lease than the one before is not missed") {
  Fixture f;
  f.Renew(3, 1, absl::Seconds(60));
  const Got first = f.Watch(3);
  f.Renew(4, 2);
  REQUIRE(first->has_value());
  CHECK((**first)->command().term() == 4);
  const Got second = f.Watch(4);
  f.time.Advance(absl::Milliseconds(2001));
  REQUIRE(second->has_value());
  CHECK(Fixture::StateOf(second) == CommandStatus::EXPIRED);
}

TEST_CASE("a standby that knows of no chief waits for the first one") {
  Fixture f;
  const Got got = f.Watch(0);
  CHECK_FALSE(got->has_value());
  f.Renew(1, 1);
  REQUIRE(got->has_value());
  CHECK(Fixture::StateOf(got) == CommandStatus::HELD);
  CHECK(f.Watch(0)->has_value());
}

TEST_CASE("one that knows of a chief hears at once that this ps knows of none") {
  Fixture f;
  const Got got = f.Watch(7);
  REQUIRE(got->has_value());
  CHECK(Fixture::StateOf(got) == CommandStatus::NONE);
}

TEST_CASE("all standbys hear of the end of the job and of a release at once") {
  Fixture f;
  f.Renew(3, 1);
  const Got a = f.Watch(3, 1);
  const Got b = f.Watch(3, 2);
  f.watch.Release(Incarnation(1));
  REQUIRE(a->has_value());
  REQUIRE(b->has_value());
  CHECK(Fixture::StateOf(a) == CommandStatus::RELEASED);
  f.Renew(4, 2);
  const Got c = f.Watch(4, 1);
  f.watch.EndJob(0, "");
  REQUIRE(c->has_value());
  CHECK(Fixture::StateOf(c) == CommandStatus::JOB_OVER);
  CHECK(Fixture::StateOf(f.Watch(4)) == CommandStatus::JOB_OVER);
}

TEST_CASE("at the end of the job a standby that has watched may ask once more") {
  Fixture f;
  f.Renew(3, 1);
  const bool was_watched = GENERATE(false, true);
  if (was_watched) f.Watch(0);
  CHECK_FALSE(f.watch.MayBeAsked());
  f.watch.EndJob(0, "");
  CHECK(f.watch.MayBeAsked() == was_watched);
}

TEST_CASE("a further call of a standby replaces its parked one, and many are bounded") {
  Fixture f;
  f.Renew(3, 1);
  const Got first = f.Watch(3, 1);
  const Got again = f.Watch(3, 1);
  REQUIRE(first->has_value());
  CHECK(absl::IsUnavailable((*first)->status()));
  for (uint64_t caller = 2; caller <= limits::kMaxWatchers; ++caller) f.Watch(3, caller);
  CHECK_FALSE(again->has_value());
  f.Watch(3, limits::kMaxWatchers + 1);
  REQUIRE(again->has_value());
  CHECK(absl::IsResourceExhausted((*again)->status()));
}

TEST_CASE("a ps that stops answers what is parked and what comes later") {
  Fixture f;
  f.Renew(3, 1);
  const Got parked = f.Watch(3);
  f.watch.Stop();
  REQUIRE(parked->has_value());
  CHECK(absl::IsUnavailable((*parked)->status()));
  CHECK(absl::IsUnavailable((*f.Watch(3))->status()));
}

}  // namespace
}  // namespace lockstep::ps
