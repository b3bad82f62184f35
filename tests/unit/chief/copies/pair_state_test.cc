#include "chief/copies/pair_state.h"

#include <catch2/catch.hpp>

#include "absl/strings/match.h"

namespace lockstep::chief {
namespace {

using Answer = absl::StatusOr<SetViewReply>;

SetViewReply StateOf(ShardRole role, bool has_copy, uint64_t epoch = 3) {
  SetViewReply reply;
  reply.set_job(7);
  reply.set_epoch(epoch);
  reply.set_term(4);
  reply.set_has_variables(true);
  reply.set_role(role);
  reply.set_has_copy(has_copy);
  reply.set_shard_step(10);
  return reply;
}

SetViewReply Empty() { return SetViewReply(); }

const Answer kAway = absl::UnavailableError("away");

TEST_CASE("two ps that are there go on as a pair, with the higher term") {
  SetViewReply copy = StateOf(COPY, false);
  copy.set_term(6);
  const auto view = JudgePair(StateOf(PRIMARY, true), copy);
  REQUIRE(view.ok());
  CHECK(view->state == PairState::kPair);
  CHECK(view->reply.has_variables());
  CHECK(view->reply.term() == 6);
  CHECK(view->reply.shard_step() == 10);
}

TEST_CASE("two ps without variables begin as a pair") {
  const auto view = JudgePair(Empty(), Empty());
  REQUIRE(view.ok());
  CHECK(view->state == PairState::kPair);
  CHECK_FALSE(view->reply.has_variables());
}

TEST_CASE("a copy that serves the workers is the shard, whatever the other ps says") {
  const SetViewReply copy = StateOf(PRIMARY, false);
  for (const Answer& primary : {Answer(StateOf(PRIMARY, true)), Answer(Empty()), kAway}) {
    const auto view = JudgePair(primary, copy);
    REQUIRE(view.ok());
    CHECK(view->state == PairState::kMoved);
    CHECK(view->reply.has_variables());
  }
  // Of an epoch that is over: the primary has begun another one.
  CHECK(JudgePair(StateOf(PRIMARY, false, 4), copy)->state == PairState::kAlone);
}

TEST_CASE("a primary that is alone is the shard, whatever its former copy says") {
  for (const Answer& copy : {Answer(StateOf(COPY, false)), Answer(Empty()), kAway}) {
    const auto view = JudgePair(StateOf(PRIMARY, false), copy);
    REQUIRE(view.ok());
    CHECK(view->state == PairState::kAlone);
    CHECK(view->reply.has_variables());
  }
}

TEST_CASE("one of a pair alone cannot say whether the other has shown more") {
  CHECK(absl::IsUnavailable(JudgePair(StateOf(PRIMARY, true), kAway).status()));
  CHECK(absl::IsUnavailable(JudgePair(kAway, StateOf(COPY, false)).status()));
  for (const auto& [primary, copy] :
       {std::pair{StateOf(PRIMARY, true), Empty()}, std::pair{Empty(), StateOf(COPY, false)},
        std::pair{StateOf(PRIMARY, true), StateOf(COPY, false, 2)}}) {
    const auto view = JudgePair(primary, copy);
    REQUIRE(view.ok());
    CHECK(view->state == PairState::kPair);
    CHECK_FALSE(view->reply.has_variables());
    CHECK(view->reply.epoch() == 3);
  }
}

TEST_CASE("a ps is lost when it refuses for a while, is silent for long, or comes back empty") {
  constexpr absl::Duration kPatience = absl::Seconds(2);
  MemberHealth health;
  health.Answered(absl::Seconds(10));
  CHECK_FALSE(health.WhyLost(absl::Seconds(11.9), kPatience).has_value());
  CHECK(absl::StrContains(*health.WhyLost(absl::Seconds(12), kPatience), "has not answered"));

  health.Answered(absl::Seconds(12));
  health.Failed(absl::UnavailableError("refused"), absl::Seconds(12.1));
  health.Failed(absl::UnavailableError("refused"), absl::Seconds(12.3));
  CHECK_FALSE(health.WhyLost(absl::Seconds(12.3), kPatience).has_value());
  CHECK(health.WhyLost(absl::Seconds(12.4), kPatience) == "refused");
  health.Answered(absl::Seconds(12.5));
  CHECK_FALSE(health.WhyLost(absl::Seconds(12.6), kPatience).has_value());

  // A call that was too late says nothing yet.
  health.Failed(absl::DeadlineExceededError("late"), absl::Seconds(12.6));
  CHECK_FALSE(health.WhyLost(absl::Seconds(13.5), kPatience).has_value());

  CHECK_FALSE(health.HasLostVariables());
  health.Lost(absl::UnavailableError("started again"));
  health.Answered(absl::Seconds(14));
  CHECK(health.WhyLost(absl::Seconds(14), kPatience) == "started again");
  CHECK(health.HasLostVariables());
}

}  // namespace
}  // namespace lockstep::chief
