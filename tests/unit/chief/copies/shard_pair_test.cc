#include "chief/copies/shard_pair.h"

#include <catch2/catch.hpp>

#include "common/base/lost_variables.h"
#include "tests/unit/chief/copies/pair_fixture.h"

namespace lockstep::chief {
namespace {

TEST_CASE("a new epoch makes a pair: the copy knows the primary alone") {
  PairFixture f;
  f.Begin();
  REQUIRE(f.home.orders.size() == 1);
  CHECK(f.home.orders[0].role() == PRIMARY);
  CHECK(f.home.orders[0].copy_address() == "b:7000");
  CHECK(f.home.orders[0].members_size() == 1);
  REQUIRE(f.copy()->orders.size() == 1);
  CHECK(f.copy()->orders[0].role() == COPY);
  CHECK(f.copy()->orders[0].members_size() == 0);
  CHECK(f.copy()->created.at(0).seed() == 5);
  CHECK_FALSE(f.copy()->created.at(0).awaits_state());
}

TEST_CASE("every order has a higher number, also where the chief repeats its view") {
  PairFixture f;
  f.Begin();
  REQUIRE(f.Call(kSetView, f.View(1)).ok());
  REQUIRE(f.home.orders.size() == 2);
  CHECK(f.home.orders[1].number() > f.home.orders[0].number());
  CHECK(f.copy()->orders[1].number() > f.copy()->orders[0].number());
}

TEST_CASE("when the home refuses connections its copy serves, with the members and the step") {
  PairFixture f;
  f.Begin();
  f.home.state.set_global_step(9);
  REQUIRE(f.Call(kCommitStep, CommitStepRequest()).ok());
  f.home.is_away = true;
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().state() == PairState::kAlone);
  CHECK(f.pair.roles().serving() == kHost);
  const SetViewRequest& order = f.copy()->orders.back();
  CHECK(order.role() == PRIMARY);
  CHECK(order.copy_address().empty());
  CHECK(order.members_size() == 1);
  CHECK(order.global_step() == 9);
  // Calls go there from now on.
  f.copy()->state.set_global_step(10);
  CHECK(f.Call(kCommitStep, CommitStepRequest())->global_step() == 10);
}

TEST_CASE("a copy that serves in another epoch is told no step of the epoch before") {
  PairFixture f;
  f.Begin();
  f.home.state.set_global_step(9);
  REQUIRE(f.Call(kCommitStep, CommitStepRequest()).ok());
  // A commit of that epoch is answered in the next one.
  f.home.holds = true;
  absl::Status late;
  f.pair.Call(kCommitStep, CommitStepRequest(),
              [&late](const absl::StatusOr<CommitStepReply>& reply) { late = reply.status(); });
  f.home.holds = false;
  f.Begin(2);
  CHECK(absl::IsUnavailable(late));
  f.home.state.set_global_step(9);
  f.home.Release();
  f.executor.Run();
  f.home.is_away = true;
  f.Pass(absl::Seconds(1));
  REQUIRE(f.pair.roles().serving() == kHost);
  REQUIRE(f.copy()->orders.back().role() == PRIMARY);
  CHECK(f.copy()->orders.back().global_step() == 0);
}

TEST_CASE("a view that a shard without a copy does not get finds that its ps was started again") {
  PairFixture f;
  f.LetHostServe();
  f.copy()->is_away = true;
  CHECK(absl::IsUnavailable(f.Call(kSetView, f.View(1)).status()));
  CHECK(f.pair.roles().state() == PairState::kAlone);
  f.RestartHost();
  CHECK(absl::IsUnavailable(f.Call(kSetView, f.View(1)).status()));
  CHECK(HasLostVariables(f.Call(kSetView, f.View(1)).status()));
}

TEST_CASE("a standby chief hears of nobody only when neither place knows who commands") {
  PairFixture f;
  REQUIRE(f.Call(kGetView, GetViewRequest()).ok());
  f.copy()->command = CommandStatus::HELD;
  // The home was started again, and the copy serves.
  CHECK(absl::IsUnavailable(f.Call(kWatchCommand, WatchCommandRequest()).status()));
  for (int i = 0; i < 2; ++i) {
    const auto reply = f.Call(kWatchCommand, WatchCommandRequest());
    REQUIRE(reply.ok());
    CHECK(reply->command().state() == CommandStatus::HELD);
  }
  f.copy()->command = CommandStatus::NONE;
  CHECK(absl::IsUnavailable(f.Call(kWatchCommand, WatchCommandRequest()).status()));
  const auto reply = f.Call(kWatchCommand, WatchCommandRequest());
  REQUIRE(reply.ok());
  CHECK(reply->command().state() == CommandStatus::NONE);
}

TEST_CASE(
    "a standby chief finds the copy server again after the ps of the copy was started again") {
  PairFixture f;
  REQUIRE(f.Call(kGetView, GetViewRequest()).ok());
  SimplePs* const old = f.copy();
  old->command = CommandStatus::HELD;
  SimplePs* const copy = f.RestartHost();
  old->is_away = true;
  const bool has_moved = GENERATE(false, true);
  if (has_moved) f.pair.host()->Move("ps 1 (c:1)", "c:1");
  // The home is away, or was started again.
  f.home.is_away = GENERATE(true, false);
  copy->command = GENERATE(CommandStatus::HELD, CommandStatus::EXPIRED);
  std::optional<WatchCommandReply> known;
  for (int calls = 0; calls < 4 && !known.has_value(); ++calls) {
    const auto reply = f.Call(kWatchCommand, WatchCommandRequest());
    if (reply.ok()) known = *reply;
  }
  REQUIRE(known.has_value());
  CHECK(known->command().state() == copy->command);
}

TEST_CASE("when the copy is lost its primary goes on alone") {
  PairFixture f;
  f.Begin();
  f.copy()->is_away = f.host_main.is_away = true;
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().state() == PairState::kAlone);
  CHECK(f.pair.roles().serving() == kHome);
  CHECK(f.home.orders.back().copy_address().empty());
}

TEST_CASE("a home that hangs for the chief's patience is replaced, and calls to it end") {
  PairFixture f;
  f.Begin();
  f.home.hangs = true;
  std::optional<absl::Status> ended;
  f.pair.Call(kCommitStep, CommitStepRequest(),
              [&](const absl::StatusOr<CommitStepReply>& reply) { ended = reply.status(); });
  f.Pass(PairFixture::kPatience - absl::Milliseconds(200));
  CHECK(f.pair.roles().serving() == kHome);
  CHECK_FALSE(ended.has_value());
  f.Pass(absl::Milliseconds(500));
  CHECK(f.pair.roles().serving() == kHost);
  REQUIRE(ended.has_value());
  CHECK(absl::IsUnavailable(*ended));
}

TEST_CASE(
    "a save goes on at a primary that goes on alone, and is made again where one is replaced") {
  PairFixture f;
  f.Begin();
  std::optional<absl::Status> ended;
  f.pair.Call(kSave, SaveRequest(),
              [&](const absl::StatusOr<SaveReply>& reply) { ended = reply.status(); });
  const bool goes_on = GENERATE(true, false);
  (goes_on ? f.copy() : &f.home)->is_away = true;
  f.host_main.is_away = goes_on;
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().state() == PairState::kAlone);
  CHECK(f.pair.roles().serving() == (goes_on ? kHome : kHost));
  REQUIRE(ended.has_value() == !goes_on);
  REQUIRE(f.home.saves.size() == 1);
  f.home.saves[0](SaveReply());
  f.executor.Run();
  CHECK(goes_on == ended->ok());
}

TEST_CASE("a primary that does not reach its copy for the chief's patience goes on alone") {
  PairFixture f;
  f.Begin();
  f.home.state.set_copy_silent_ms(2500);
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().IsAlone());
  CHECK(f.pair.roles().serving() == kHome);
}

TEST_CASE("the copy that has refused its primary serves in its place") {
  PairFixture f;
  const bool is_adopted = GENERATE(false, true);  // by a chief that comes later
  if (!is_adopted) f.Begin();
  f.home.state.set_is_deposed(true);
  if (is_adopted) f.Begin();
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().serving() == kHost);
  CHECK(f.pair.roles().state() == PairState::kAlone);
}

TEST_CASE("a shard that both have lost goes back to its checkpoint") {
  PairFixture f;
  f.Begin();
  f.home.StartAgain();
  f.copy()->StartAgain();
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().state() == PairState::kLost);
  CHECK(HasLostVariables(f.Call(kCommitStep, CommitStepRequest()).status()));
  // Another epoch is a pair again.
  f.Begin(2);
  CHECK(f.pair.roles().serving() == kHome);
}

TEST_CASE("the home of a lost shard hears of the chief's lease and of the end") {
  PairFixture f;
  const bool host_served = GENERATE(false, true);
  if (host_served) {
    f.LetHostServe();
    f.Pass(absl::Seconds(1));
    f.copy()->is_away = true;
    f.RestartHost();
    REQUIRE(f.Call(kGetView, GetViewRequest()).ok());
  } else {
    f.Begin();
    f.home.StartAgain();
    f.copy()->StartAgain();
    f.Pass(absl::Seconds(1));
  }
  REQUIRE(f.pair.roles().state() == PairState::kLost);
  CHECK(f.Call(kRenewLease, RenewLeaseRequest()).ok());
  CHECK(f.home.renewals > 0);
  CHECK(f.Call(kFinish, FinishRequest()).ok());
  CHECK(f.home.finished > 0);
  CHECK(HasLostVariables(f.Call(kCommitStep, CommitStepRequest()).status()));
}

TEST_CASE("a shard is lost with the ps that serves it while its new copy lacks state") {
  PairFixture f;
  f.LetHostServe();
  f.Pass(absl::Seconds(1));
  REQUIRE(f.home.state.awaits_state());
  f.copy()->is_away = true;
  f.RestartHost();
  const auto view = f.Call(kGetView, GetViewRequest());
  REQUIRE(view.ok());
  CHECK_FALSE(view->has_variables());
  // The chief knows it without asking the home again.
  CHECK(HasLostVariables(f.Call(kSetView, f.View(1)).status()));
  CHECK(HasLostVariables(f.Call(kCommitStep, CommitStepRequest()).status()));
  f.Begin(2);
  CHECK(f.pair.roles().serving() == kHome);
}

TEST_CASE("a promotion that cannot be delivered is asked for again, and calls wait") {
  PairFixture f;
  f.Begin();
  f.home.is_away = true;
  f.copy()->refusal = absl::UnavailableError("still applies step 3");
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().state() == PairState::kPair);
  f.copy()->refusal = absl::OkStatus();
  f.Pass(absl::Milliseconds(500));
  CHECK(f.pair.roles().serving() == kHost);
}

TEST_CASE("a chief that takes command finds the host that serves") {
  PairFixture f;
  f.LetHostServe();
  PairFixture successor;
  successor.copy()->state = f.copy()->state;
  const auto view = successor.Call(kGetView, GetViewRequest());
  REQUIRE(view.ok());
  CHECK(view->has_variables());
  CHECK(successor.pair.roles().serving() == kHost);
  REQUIRE(successor.Call(kSetView, successor.View(1, 2)).ok());
  CHECK(successor.home.orders.empty());
  CHECK(successor.copy()->orders.back().command().term() == 2);
  CHECK(successor.pair.roles().IsAlone());
}

TEST_CASE("a chief that takes command forgets a copy that its predecessor has given up meanwhile") {
  PairFixture f;
  f.Begin();
  PairFixture successor;
  successor.home.state = f.home.state;
  successor.copy()->state = f.copy()->state;
  REQUIRE(successor.Call(kGetView, GetViewRequest()).ok());
  CHECK(successor.pair.roles().state() == PairState::kPair);
  // The last order of the chief before.
  successor.home.state.set_has_copy(false);
  CHECK(absl::IsUnavailable(successor.Call(kSetView, successor.View(1, 2)).status()));
  CHECK(successor.copy()->orders.empty());
  REQUIRE(successor.Call(kSetView, successor.View(1, 2)).ok());
  CHECK(successor.pair.roles().IsAlone());
  CHECK(successor.home.orders.back().copy_address().empty());
}

TEST_CASE("a copy that its primary has given up does not serve when that one is lost") {
  PairFixture f;
  f.Begin();
  f.home.state.set_has_copy(false);
  SECTION("a look at the primary shows it") { f.Pass(absl::Milliseconds(500)); }
  SECTION("an order to the primary shows it") {
    REQUIRE(f.Call(kSetView, f.View(1)).ok());
    f.pair.Tick();
    f.executor.Run();
  }
  CHECK(f.pair.roles().IsAlone());
  f.home.is_away = true;
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.roles().serving() == kHome);
}

TEST_CASE("both are told that the job is over") {
  PairFixture f;
  f.Begin();
  REQUIRE(f.Call(kFinish, FinishRequest()).ok());
  CHECK(f.home.finished == 1);
  CHECK(f.copy()->finished == 1);
  f.Pass(absl::Seconds(2));
  CHECK(f.copy()->finished == 1);
  CHECK(f.pair.DescribeUnfinished().empty());
}

TEST_CASE("the ps that does not serve is told that the job is over until it answers") {
  PairFixture f;
  const bool host_serves = GENERATE(false, true);
  host_serves ? f.LetHostServe() : f.Begin();
  SimplePs& other = host_serves ? f.home : *f.copy();
  other.is_away = true;
  REQUIRE(f.Call(kFinish, FinishRequest()).ok());
  CHECK(other.finished == 0);
  f.Pass(absl::Seconds(1));
  CHECK(f.pair.DescribeUnfinished() == "connection refused");
  other.is_away = false;
  f.Pass(absl::Seconds(3));
  CHECK(other.finished == 1);
  CHECK(f.pair.DescribeUnfinished().empty());
}

TEST_CASE("a pair whose job is over changes places no more") {
  PairFixture f;
  f.Begin();
  REQUIRE(f.Call(kFinish, FinishRequest()).ok());
  const size_t orders = f.copy()->orders.size();
  f.home.is_away = true;
  f.Pass(absl::Seconds(3));
  CHECK(f.pair.roles().serving() == kHome);
  CHECK(f.copy()->orders.size() == orders);
}

}  // namespace
}  // namespace lockstep::chief
