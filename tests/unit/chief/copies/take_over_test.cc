// A chief that takes command of a pair while the chief before it still changes who serves.
#include <catch2/catch.hpp>
#include <optional>

#include "common/base/lost_variables.h"
#include "tests/unit/chief/copies/pair_fixture.h"

namespace lockstep::chief {
namespace {

// A chief that has looked at a pair whose home serves, and commands nothing yet.
struct Successor : PairFixture {
  Successor() {
    PairFixture before;
    before.Begin();
    home.state = before.home.state;
    copy()->state = before.copy()->state;
    REQUIRE(Call(kGetView, GetViewRequest()).ok());
    REQUIRE(pair.roles().state() == PairState::kPair);
    REQUIRE(pair.roles().serving() == kHome);
  }

  // What its predecessor has done since: the host was promoted, and the home becomes the new copy.
  void LetHostServe() {
    copy()->state.set_role(PRIMARY);
    copy()->state.set_has_copy(false);
    home.state.set_role(COPY);
    home.state.set_has_copy(false);
    home.state.set_awaits_state(true);
  }
  absl::Status TakeCommand() { return Call(kSetView, View(1, 2)).status(); }
};

TEST_CASE("a chief that a new copy refuses looks who serves") {
  Successor f;
  f.LetHostServe();
  CHECK(absl::IsUnavailable(f.TakeCommand()));
  REQUIRE(f.TakeCommand().ok());
  CHECK(f.pair.roles().serving() == kHost);
  CHECK(f.pair.roles().IsAlone());
  CHECK(f.copy()->state.term() == 2);
}

TEST_CASE("a chief promotes the copy at the step that was committed when it took command") {
  Successor f;
  // Its predecessor commits after this chief has looked. No later commit is made before the loss.
  f.home.state.set_global_step(9);
  REQUIRE(f.TakeCommand().ok());
  f.home.is_away = true;
  f.Pass(absl::Seconds(1));
  REQUIRE(f.pair.roles().serving() == kHost);
  CHECK(f.copy()->orders.back().role() == PRIMARY);
  CHECK(f.copy()->orders.back().global_step() == 9);
}

TEST_CASE("a chief whose copy serves the workers looks who serves") {
  Successor f;
  f.LetHostServe();
  // The home was started again, and takes the chief for the first one.
  f.home.StartAgain();
  CHECK(absl::IsUnavailable(f.TakeCommand()));
  REQUIRE(f.TakeCommand().ok());
  CHECK(f.pair.roles().serving() == kHost);
  CHECK(f.pair.roles().IsAlone());
}

TEST_CASE("a chief whose home has lost the variables finds that the copy does not serve either") {
  Successor f;
  f.home.StartAgain();
  f.home.state.set_job(7);
  f.home.state.set_epoch(1);
  const auto told = f.Call(kSetView, f.View(1, 2));
  const bool is_lost = told.ok() ? !told->has_variables() : LacksVariables(told.status());
  CHECK(is_lost);
}

TEST_CASE("a chief that asked the new copy too early, and who serves later, asks again") {
  Successor f;
  f.LetHostServe();
  SetViewReply copy = f.home.state;
  // It was started again, and the chief before makes it the copy between the two answers.
  f.home.state = SetViewReply();
  std::optional<absl::StatusOr<SetViewReply>> answer;
  f.pair.Call(kGetView, GetViewRequest(),
              [&](absl::StatusOr<SetViewReply> reply) { answer = std::move(reply); });
  f.home.state = copy;
  f.copy()->state.set_has_copy(true);
  f.executor.Run();
  REQUIRE(answer.has_value());
  REQUIRE(answer->ok());
  CHECK((*answer)->has_variables());
  CHECK(f.pair.roles().serving() == kHost);
  CHECK(f.TakeCommand().ok());
  CHECK(f.pair.roles().IsAlone());
}

TEST_CASE("a chief whose host is started again before it obeys finds that the shard is lost") {
  Successor f;
  f.LetHostServe();
  SECTION("with a copy at the home") {
    f.copy()->state.set_has_copy(true);
    f.home.state.set_awaits_state(false);
  }
  SECTION("alone") {}
  REQUIRE(f.Call(kGetView, GetViewRequest()).ok());
  REQUIRE(f.pair.roles().serving() == kHost);
  f.copy()->is_away = true;
  SECTION("for a while it is away") { CHECK(absl::IsUnavailable(f.TakeCommand())); }
  f.RestartHost();
  CHECK(HasLostVariables(f.TakeCommand()));
}

TEST_CASE("a chief whose host is lost before it obeys finds the home that serves in its place") {
  Successor f;
  f.LetHostServe();
  f.copy()->state.set_has_copy(true);
  f.home.state.set_awaits_state(false);
  REQUIRE(f.Call(kGetView, GetViewRequest()).ok());
  // Its predecessor promotes the home.
  f.RestartHost();
  f.copies[7000].is_away = true;
  f.home.state.set_role(PRIMARY);
  CHECK(absl::IsUnavailable(f.TakeCommand()));
  CHECK(f.TakeCommand().ok());
  CHECK(f.pair.roles().serving() == kHome);
}

TEST_CASE("a chief that is refused for its term ends") {
  Successor f;
  const bool is_home = GENERATE(true, false);
  (is_home ? f.home : *f.copy()).refusal = absl::AbortedError("term 2 belongs to another chief");
  CHECK(absl::IsAborted(f.TakeCommand()));
}

TEST_CASE("a chief that cannot look again after a refusal tries again") {
  Successor f;
  f.LetHostServe();
  f.host_main.is_away = true;
  CHECK(absl::IsUnavailable(f.TakeCommand()));
  CHECK(absl::IsUnavailable(f.TakeCommand()));
  f.host_main.is_away = false;
  CHECK(absl::IsUnavailable(f.TakeCommand()));
  REQUIRE(f.TakeCommand().ok());
  CHECK(f.pair.roles().serving() == kHost);
}

TEST_CASE("a copy is found at the new port when its ps is started again while the epoch begins") {
  PairFixture f;
  REQUIRE(f.Call(kGetView, GetViewRequest()).ok());
  f.copy()->refusal = absl::UnavailableError("connection refused");
  CHECK(absl::IsUnavailable(f.Call(kSetView, f.View(1)).status()));
  f.RestartHost();
  CHECK(absl::IsUnavailable(f.Call(kSetView, f.View(1)).status()));
  REQUIRE(f.Call(kSetView, f.View(1)).ok());
  CHECK(f.home.orders.back().copy_address() == "b:7001");
  CHECK(f.copy()->orders.size() == 1);
}

TEST_CASE("an order to a copy that comes after its promotion ends no chief") {
  PairFixture f;
  f.Begin();
  f.copy()->holds = true;
  std::optional<absl::Status> told;
  f.pair.Call(kSetView, f.View(1),
              [&](const absl::StatusOr<SetViewReply>& reply) { told = reply.status(); });
  f.executor.Run();
  f.copy()->holds = false;
  f.home.is_away = true;
  f.Pass(absl::Seconds(1));
  REQUIRE(f.pair.roles().serving() == kHost);
  CHECK_FALSE(told.has_value());
  f.copy()->Release();
  f.executor.Run();
  REQUIRE(told.has_value());
  CHECK(absl::IsUnavailable(*told));
}

}  // namespace
}  // namespace lockstep::chief
