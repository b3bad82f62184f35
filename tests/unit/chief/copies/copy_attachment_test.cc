// A new copy while the job trains, as the chief drives it.
#include <catch2/catch.hpp>

#include "tests/unit/chief/copies/pair_fixture.h"

namespace lockstep::chief {
namespace {

// The home is lost, and its host serves alone.
struct MovedFixture : PairFixture {
  MovedFixture() {
    Begin();
    home.is_away = true;
    Pass(absl::Seconds(1));
    REQUIRE(pair.roles().IsAlone());
    REQUIRE(pair.roles().serving() == kHost);
  }
};

TEST_CASE("a home that comes back becomes the copy, and may serve again") {
  MovedFixture f;
  f.home.StartAgain();
  f.Pass(absl::Seconds(1));
  REQUIRE(f.home.orders.size() == 1);
  CHECK(f.home.orders[0].role() == COPY);
  CHECK(f.home.orders[0].members_size() == 0);
  CHECK(f.home.orders[0].makes_copy());
  REQUIRE(f.home.created.size() == 1);
  CHECK(f.home.created[0].awaits_state());
  CHECK(f.home.created[0].seed() == 5);
  CHECK(f.copy()->orders.back().copy_address() == PairFixture::kHomeAddress);
  CHECK(f.copy()->orders.back().role() == PRIMARY);
  CHECK(f.copy()->orders.back().members_size() == 1);
  // Not before it has its state.
  f.Pass(absl::Seconds(5));
  CHECK(f.pair.roles().IsAlone());
  f.home.state.set_awaits_state(false);
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().IsGuarded());
  CHECK(f.pair.roles().serving() == kHost);
  REQUIRE(f.Call(kSetView, f.View(1)).ok());
  CHECK_FALSE(f.home.orders.back().makes_copy());

  f.copy()->is_away = true;
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().IsAlone());
  CHECK(f.pair.roles().serving() == kHome);
  CHECK(f.home.orders.back().role() == PRIMARY);
}

TEST_CASE("a host that is started again keeps the new copy, at its new port") {
  PairFixture f;
  f.Begin();
  f.copy()->is_away = true;
  SimplePs* const host = f.RestartHost();
  f.Pass(absl::Seconds(2));
  CHECK(f.pair.roles().IsAlone());
  REQUIRE(host->created.size() == 1);
  CHECK(f.home.orders.back().copy_address() == "b:7001");
  host->state.set_awaits_state(false);
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().IsGuarded());
  CHECK(f.pair.roles().serving() == kHome);
}

TEST_CASE("no connection is left to a host that was started again") {
  PairFixture f;
  f.Begin();
  for (int i = 0; i < 3; ++i) {
    SimplePs* const before = f.copy();
    REQUIRE(before->connections == 1);
    before->is_away = true;
    SimplePs* const host = f.RestartHost();
    f.Pass(absl::Seconds(5));
    REQUIRE(host->created.size() == 1);
    CHECK(before->connections == 0);
    host->state.set_awaits_state(false);
    f.Pass(absl::Seconds(1));
    CHECK(f.pair.roles().IsGuarded());
  }
}

TEST_CASE("a host that is started again elsewhere keeps the new copy, at its new address") {
  PairFixture f;
  f.Begin();
  f.copy()->is_away = true;
  f.pair.home()->Move("ps 0 (d:1)", "d:1");
  f.pair.host()->Move("ps 1 (c:1)", "c:1");
  CHECK(f.pair.roles().name() == "ps 0 (d:1)");
  CHECK(f.pair.roles().serving_place()->address() == "d:1");
  const bool has_another_port = GENERATE(true, false);
  if (has_another_port) {
    f.RestartHost();
  } else {
    f.copy()->StartAgain();
  }
  f.Pass(absl::Seconds(2));
  CHECK(f.pair.roles().IsAlone());
  CHECK(f.home.orders.back().copy_address() == (has_another_port ? "c:7001" : "c:7000"));
  f.copy()->state.set_awaits_state(false);
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().IsGuarded());
}

TEST_CASE("the chief's views name the new copy while it gets its state") {
  MovedFixture f;
  f.home.StartAgain();
  f.Pass(absl::Seconds(1));
  REQUIRE(f.Call(kSetView, f.View(1)).ok());
  CHECK(f.copy()->orders.back().copy_address() == PairFixture::kHomeAddress);
  CHECK(f.pair.roles().IsAlone());
}

TEST_CASE("a new copy keeps the chief's lease while it gets its state") {
  MovedFixture f;
  f.home.StartAgain();
  f.Pass(absl::Seconds(1));
  REQUIRE(f.pair.roles().IsAlone());
  REQUIRE(f.home.created.size() == 1);
  REQUIRE(f.Call(kRenewLease, RenewLeaseRequest()).ok());
  CHECK(f.home.renewals == 1);
  CHECK(f.copy()->renewals == 1);
}

TEST_CASE("a copy that awaits its state is never promoted") {
  MovedFixture f;
  f.home.StartAgain();
  f.Pass(absl::Seconds(1));
  f.copy()->is_away = true;
  f.Pass(absl::Seconds(10));
  CHECK(f.home.orders.size() == 1);
  CHECK(f.pair.roles().serving() == kHost);
}

TEST_CASE(
    "when the new copy is lost the primary goes on alone, and another is made after a pause") {
  MovedFixture f;
  f.home.StartAgain();
  f.Pass(absl::Seconds(1));
  f.home.StartAgain();
  f.Pass(absl::Milliseconds(500));
  CHECK(f.copy()->orders.back().copy_address().empty());
  CHECK(f.pair.roles().IsAlone());
  f.Pass(absl::Seconds(1));
  CHECK(f.home.orders.empty());
  f.Pass(absl::Seconds(2));
  REQUIRE(f.home.created.size() == 1);
  f.home.state.set_awaits_state(false);
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().IsGuarded());
}

TEST_CASE("pauses between attempts grow") {
  MovedFixture f;
  f.home.StartAgain();
  f.home.refusal = absl::AbortedError("it serves the workers");
  std::vector<absl::Duration> waits;
  f.home.refusals = 0;
  for (int seen = 0; waits.size() < 4;) {
    const absl::Duration before = f.clock.Monotonic();
    while (f.home.refusals == seen) f.Pass(absl::Milliseconds(100));
    seen = f.home.refusals;
    waits.push_back(f.clock.Monotonic() - before);
  }
  CHECK(waits[1] >= absl::Seconds(2));
  CHECK(waits[2] >= absl::Seconds(4));
  CHECK(waits[3] >= absl::Seconds(8));
  // The one that serves has not been told anything.
  CHECK(f.copy()->orders.back().copy_address().empty());
}

TEST_CASE("a chief whose primary refuses a new copy looks at the shard again, and makes another") {
  MovedFixture f;
  f.home.StartAgain();
  f.copy()->refusal = absl::AbortedError("an older view");
  f.Pass(absl::Seconds(1));
  REQUIRE(f.home.created.size() == 1);
  CHECK(f.pair.roles().IsAlone());
  CHECK(f.pair.roles().serving() == kHost);
  f.copy()->refusal = absl::OkStatus();
  CHECK(f.Call(kCommitStep, CommitStepRequest()).ok());
  f.Pass(absl::Seconds(4));
  CHECK(f.home.created.size() == 2);
  f.home.state.set_awaits_state(false);
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().IsGuarded());
}

TEST_CASE("a new copy that hangs is given up after the chief's patience") {
  MovedFixture f;
  f.home.StartAgain();
  f.Pass(absl::Seconds(1));
  REQUIRE_FALSE(f.copy()->orders.back().copy_address().empty());
  f.home.hangs = true;
  f.Pass(PairFixture::kPatience + absl::Milliseconds(500));
  CHECK(f.copy()->orders.back().copy_address().empty());
  CHECK(f.pair.roles().IsAlone());
}

TEST_CASE("a question that is left without an answer costs no new copy") {
  MovedFixture f;
  f.home.StartAgain();
  f.Pass(absl::Seconds(1));
  REQUIRE_FALSE(f.copy()->orders.back().copy_address().empty());
  const bool is_of_primary = GENERATE(true, false);
  (is_of_primary ? *f.copy() : f.home).unanswered = 1;
  f.Pass(2 * PairFixture::kPatience);
  CHECK_FALSE(f.copy()->orders.back().copy_address().empty());
  f.home.state.set_awaits_state(false);
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().IsGuarded());
}

TEST_CASE("a new copy that refuses one question, and takes long for the next, is not given up") {
  MovedFixture f;
  f.home.StartAgain();
  f.Pass(absl::Seconds(1));
  REQUIRE_FALSE(f.copy()->orders.back().copy_address().empty());
  f.home.failures = 1;
  while (f.home.failures > 0) f.Pass(absl::Milliseconds(100));
  f.home.unanswered = 1;
  f.Pass(PairFixture::kPatience / 2);
  CHECK(f.home.unanswered == 0);
  CHECK_FALSE(f.copy()->orders.back().copy_address().empty());
  f.home.state.set_awaits_state(false);
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().IsGuarded());
}

TEST_CASE("a chief that stood still goes on with the new copy") {
  MovedFixture f;
  f.home.StartAgain();
  f.Pass(absl::Seconds(1));
  REQUIRE_FALSE(f.copy()->orders.back().copy_address().empty());
  f.StandStill();
  f.Pass(absl::Milliseconds(500));
  CHECK_FALSE(f.copy()->orders.back().copy_address().empty());
  f.home.state.set_awaits_state(false);
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().IsGuarded());
}

TEST_CASE("a new copy that the primary does not reach is given up") {
  MovedFixture f;
  f.home.StartAgain();
  f.Pass(absl::Seconds(1));
  f.copy()->state.set_copy_silent_ms(2500);
  f.Pass(absl::Milliseconds(500));
  CHECK(f.copy()->orders.back().copy_address().empty());
}

TEST_CASE("a shard is lost whose primary was refused by its new copy") {
  MovedFixture f;
  f.home.StartAgain();
  f.Pass(absl::Seconds(1));
  REQUIRE(f.pair.roles().IsAlone());
  f.copy()->state.set_is_deposed(true);
  f.Pass(absl::Milliseconds(500));
  CHECK(f.pair.roles().state() == PairState::kLost);
  CHECK(HasLostVariables(f.pair.roles().why_lost()));
}

TEST_CASE("an order to go on alone that is lost is given again") {
  MovedFixture f;
  f.home.StartAgain();
  f.Pass(absl::Seconds(1));
  f.copy()->refusal = absl::UnavailableError("away");
  f.home.StartAgain();
  f.Pass(absl::Seconds(1));
  CHECK_FALSE(f.copy()->orders.back().copy_address().empty());
  f.copy()->refusal = absl::OkStatus();
  f.Pass(absl::Milliseconds(500));
  CHECK(f.copy()->orders.back().copy_address().empty());
}

TEST_CASE("a copy that is complete counts once its primary waits for it") {
  MovedFixture f;
  f.home.StartAgain();
  f.Pass(absl::Seconds(1));
  f.home.state.set_awaits_state(false);
  f.copy()->state.set_has_copy(false);
  f.Pass(absl::Seconds(1));
  CHECK_FALSE(f.pair.roles().IsGuarded());
  CHECK(f.copy()->orders.back().copy_address().empty());
}

TEST_CASE(
    "a chief that looks at the shard as its new copy gets complete goes on with the attempt") {
  MovedFixture f;
  f.home.StartAgain();
  f.Pass(absl::Seconds(1));
  f.home.state.set_awaits_state(false);
  // A call that fails has the chief ask both.
  f.copy()->failures = 1;
  CHECK(f.Call(kGetView, GetViewRequest()).ok());
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().IsGuarded());
  f.copy()->is_away = true;
  f.Pass(absl::Seconds(1));
  CHECK(f.home.orders.back().role() == PRIMARY);
}

TEST_CASE("another epoch ends an attempt, and is a pair of its own") {
  MovedFixture f;
  f.home.StartAgain();
  f.Pass(absl::Seconds(1));
  REQUIRE(f.Call(kSetView, f.View(2)).ok());
  REQUIRE(f.Call(kCreateVariables, PairFixture::Variables()).ok());
  CHECK(f.pair.roles().IsGuarded());
  CHECK(f.pair.roles().serving() == kHome);
  CHECK_FALSE(f.home.created.back().awaits_state());
  f.Pass(absl::Seconds(2));
  CHECK(f.pair.roles().IsGuarded());
}

TEST_CASE("no copy is made of a shard whose job is over") {
  MovedFixture f;
  REQUIRE(f.Call(kFinish, FinishRequest()).ok());
  f.home.StartAgain();
  f.Pass(absl::Seconds(5));
  CHECK(f.home.orders.empty());
}

TEST_CASE("a chief that takes command in the middle of an attempt begins another one") {
  MovedFixture before;
  before.home.StartAgain();
  before.Pass(absl::Seconds(1));
  PairFixture f;
  f.home.state = before.home.state;
  f.copy()->state = before.copy()->state;
  REQUIRE(f.home.state.awaits_state());
  const auto view = f.Call(kGetView, GetViewRequest());
  REQUIRE(view.ok());
  CHECK(view->has_variables());
  CHECK(f.pair.roles().serving() == kHost);
  REQUIRE(f.Call(kSetView, f.View(1, 2)).ok());
  CHECK(f.copy()->orders.back().copy_address().empty());
  REQUIRE(f.Call(kCreateVariables, PairFixture::Variables()).ok());
  f.Pass(absl::Seconds(1));
  CHECK(f.copy()->orders.back().copy_address() == PairFixture::kHomeAddress);
  CHECK(f.home.orders.back().command().term() == 2);
  f.home.state.set_awaits_state(false);
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().IsGuarded());
  CHECK(f.pair.roles().serving() == kHost);
}

}  // namespace
}  // namespace lockstep::chief
