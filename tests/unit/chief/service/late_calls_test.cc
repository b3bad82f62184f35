// Calls that come after a call which was sent later.
#include <catch2/catch.hpp>

#include "common/base/exit_code.h"
#include "tests/unit/chief/service/worker_calls_fixture.h"

namespace lockstep::chief {
namespace {

using namespace worker_calls_test;

const WorkerIndex kW0(0);
const Incarnation kTen(10);

ReplyId OfAnotherRun() {
  ReplyId id;
  id.set_run(kRun + 1);
  id.set_number(1);
  return id;
}

TEST_CASE("a process that began in another run is no member: its registration has come late") {
  Fixture f;
  f.Train();
  f.received[10] = OfAnotherRun();
  const uint64_t changes = f.membership.changes();
  const auto beat = f.Beat(0, 10);
  REQUIRE(beat->has_value());
  CHECK(absl::IsAborted((*beat)->status()));
  CHECK(ExitCodeFor((*beat)->status()) == ExitCode::kPeersLost);
  CHECK(f.membership.changes() == changes + 1);
  CHECK(f.membership.Live() == std::vector<LiveMember>{{WorkerIndex(1), Incarnation(20)}});
  // Its successor need not wait.
  const auto successor = f.Register(0, 11);
  REQUIRE(successor->has_value());
  CHECK((**successor)->ready());
}

TEST_CASE("a parked successor is admitted when a process of another run is found out") {
  Fixture f;
  f.Train();
  const auto successor = f.Register(0, 11);
  CHECK_FALSE(successor->has_value());
  f.received[10] = OfAnotherRun();
  f.Beat(0, 10);
  REQUIRE(successor->has_value());
  CHECK((**successor)->ready());
}

TEST_CASE("an inherited member names a reply of the chief before") {
  Fixture f;
  f.membership.Adopt({kW0, kTen}, f.clock.Monotonic());
  f.Begin();
  f.received[10] = OfAnotherRun();
  f.Beat(0, 10);
  const auto again = f.Beat(0, 10);
  CHECK_FALSE(again->has_value());
  CHECK(f.membership.Live() == std::vector<LiveMember>{{kW0, kTen}});
}

TEST_CASE("before the members are known a process of another run may be one") {
  Fixture f;
  f.Register(0, 10);
  f.received[10] = OfAnotherRun();
  const auto beat = f.Beat(0, 10);
  CHECK(absl::IsUnavailable((*beat)->status()));
  f.membership.Adopt({kW0, kTen}, f.clock.Monotonic());
  f.Begin();
  CHECK_FALSE(f.Beat(0, 10)->has_value());
}

TEST_CASE("a late registration while a chief takes over displaces no member") {
  Fixture f;
  const auto late = f.Register(0, 9);  // of a process that died before 10 was started
  f.Pass(absl::Milliseconds(500));
  CHECK(absl::IsUnavailable((*f.Beat(0, 10))->status()));
  f.membership.Adopt({kW0, kTen}, f.clock.Monotonic());
  f.Begin();
  const auto beat = f.Beat(0, 10);
  CHECK_FALSE(beat->has_value());
  CHECK(f.membership.Live() == std::vector<LiveMember>{{kW0, kTen}});
  f.Pass(absl::Seconds(3));
  REQUIRE(late->has_value());
  CHECK_FALSE((*late)->value().ready());
  CHECK(f.membership.Live() == std::vector<LiveMember>{{kW0, kTen}});
}

TEST_CASE("the registration of a process that sends heartbeats has come late") {
  Fixture f;
  SECTION("after a heartbeat") {
    CHECK(absl::IsUnavailable((*f.Beat(0, 10))->status()));
    const auto late = f.Register(0, 10);
    REQUIRE(late->has_value());
    CHECK(absl::IsUnavailable((*late)->status()));
  }
  SECTION("before it") {
    const auto late = f.Register(0, 10);
    CHECK_FALSE(late->has_value());
    f.Beat(0, 10);
    REQUIRE(late->has_value());
    CHECK(absl::IsUnavailable((*late)->status()));
  }
  // Thus it is not told the end with it.
  f.Begin();
  f.calls.End(absl::OkStatus());
  f.Register(1, 20);
  CHECK_FALSE(f.calls.EverybodyKnows());
}

TEST_CASE("a heartbeat that another one has overtaken has no effect") {
  Fixture f;
  f.Train();
  const auto first = f.Beat(0, 10);
  f.Pass(absl::Seconds(1.1));
  const std::map<uint64_t, ReplyId> before = f.received;
  f.Receive(10, first);
  const auto second = f.Beat(0, 10);
  f.Pass(absl::Milliseconds(500));
  f.received = before;
  const auto late = f.Beat(0, 10);
  REQUIRE(late->has_value());
  CHECK(absl::IsUnavailable((*late)->status()));
  CHECK_FALSE(second->has_value());
  CHECK(f.clock.Monotonic() - f.membership.members()[0].last_heard >= absl::Milliseconds(500));
}

TEST_CASE("a heartbeat after a lost reply names the reply before, and counts") {
  Fixture f;
  f.Train();
  f.Receive(10, f.Beat(0, 10, {{}}));
  f.Beat(0, 10);
  f.Pass(absl::Seconds(1.1));
  f.Beat(0, 10);
  CHECK(f.membership.members()[0].last_heard == f.clock.Monotonic());
}

TEST_CASE("each reply to a process has its own id") {
  Fixture f;
  f.Train();
  const auto first = f.Beat(0, 10);
  const auto second = f.Beat(0, 10);
  f.Pass(absl::Seconds(1.1));
  const auto other = f.Beat(1, 20);
  f.Pass(absl::Seconds(1.1));
  CHECK((**first)->id().run() == kRun);
  CHECK((**second)->id().number() == (**first)->id().number() + 1);
  CHECK((**other)->id().run() == kRun);
  CHECK((**other)->id().number() == (**first)->id().number());
}

}  // namespace
}  // namespace lockstep::chief
