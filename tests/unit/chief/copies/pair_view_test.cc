#include "chief/copies/pair_view.h"

#include <catch2/catch.hpp>

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
  const auto view = JudgePair({StateOf(PRIMARY, true), copy});
  REQUIRE(view.ok());
  CHECK(view->state == PairState::kPair);
  CHECK(view->reply.has_variables());
  CHECK(view->reply.term() == 6);
  CHECK(view->reply.shard_step() == 10);
}

TEST_CASE("two ps without variables begin as a pair") {
  const auto view = JudgePair({Empty(), Empty()});
  REQUIRE(view.ok());
  CHECK(view->state == PairState::kPair);
  CHECK_FALSE(view->reply.has_variables());
}

TEST_CASE("a shard that is lost says whether a ps has variables of it, and of which steps") {
  CHECK_FALSE(JudgePair({Empty(), Empty()})->reply.awaits_state());
  SetViewReply of_copy = StateOf(COPY, false);
  of_copy.set_start_step(4);
  for (const PlaceIndex left : {kHome, kHost}) {
    PlaceAnswers answers;
    answers[left] = of_copy;
    answers[OtherPlace(left)] = Empty();
    const SetViewReply reply = JudgePair(answers)->reply;
    CHECK_FALSE(reply.has_variables());
    CHECK(reply.awaits_state());
    CHECK(reply.start_step() == 4);
    CHECK(reply.shard_step() == 10);
  }
}

TEST_CASE("a shard that is lost names steps of its newest epoch alone") {
  SetViewReply newer = StateOf(PRIMARY, true);
  newer.set_start_step(4);
  newer.set_global_step(10);
  SetViewReply older = StateOf(COPY, false, 2);
  older.set_start_step(8);
  older.set_shard_step(12);
  older.set_global_step(12);
  SetViewReply without = Empty();
  without.set_epoch(3);
  for (const PlaceIndex place : {kHome, kHost}) {
    PlaceAnswers answers;
    answers[place] = newer;
    answers[OtherPlace(place)] = older;
    const SetViewReply reply = JudgePair(answers)->reply;
    CHECK_FALSE(reply.has_variables());
    CHECK(reply.awaits_state());
    CHECK(reply.epoch() == 3);
    CHECK(reply.start_step() == 4);
    CHECK(reply.shard_step() == 10);
    CHECK(reply.global_step() == 10);
    answers[place] = without;
    CHECK_FALSE(JudgePair(answers)->reply.awaits_state());
  }
}

TEST_CASE("a ps knows the job for the other one, which was started again") {
  SetViewReply copy = StateOf(COPY, false);
  copy.set_awaits_state(true);
  for (const PlaceIndex known : {kHome, kHost}) {
    PlaceAnswers answers;
    answers[known] = copy;
    answers[OtherPlace(known)] = Empty();
    const auto view = JudgePair(answers);
    REQUIRE(view.ok());
    CHECK_FALSE(view->reply.has_variables());
    CHECK(view->reply.job() == 7);
  }
}

TEST_CASE("a copy that serves the workers is the shard, whatever the other ps says") {
  const SetViewReply copy = StateOf(PRIMARY, false);
  for (const Answer& primary : {Answer(StateOf(PRIMARY, true)), Answer(Empty()), kAway}) {
    const auto view = JudgePair({primary, copy});
    REQUIRE(view.ok());
    CHECK(view->state == PairState::kAlone);
    CHECK(view->serving == kHost);
    CHECK(view->reply.has_variables());
  }
  // Of an epoch that is over: the primary has begun another one.
  CHECK(JudgePair({StateOf(PRIMARY, false, 4), copy})->serving == kHome);
}

TEST_CASE("a primary that is alone is the shard, whatever its former copy says") {
  for (const Answer& copy : {Answer(StateOf(COPY, false)), Answer(Empty()), kAway}) {
    const auto view = JudgePair({StateOf(PRIMARY, false), copy});
    REQUIRE(view.ok());
    CHECK(view->state == PairState::kAlone);
    CHECK(view->serving == kHome);
    CHECK(view->reply.has_variables());
  }
}

TEST_CASE("either place may serve and the other one keep the copy") {
  for (const PlaceIndex serving : {kHome, kHost}) {
    PlaceAnswers answers;
    answers[serving] = StateOf(PRIMARY, true);
    answers[OtherPlace(serving)] = StateOf(COPY, false);
    const auto view = JudgePair(answers);
    REQUIRE(view.ok());
    CHECK(view->state == PairState::kPair);
    CHECK(view->serving == serving);
    CHECK(view->reply.has_variables());
  }
}

TEST_CASE("a copy that awaits its state counts as none") {
  SetViewReply copy = StateOf(COPY, false);
  copy.set_awaits_state(true);
  for (const PlaceIndex serving : {kHome, kHost}) {
    PlaceAnswers answers;
    answers[serving] = StateOf(PRIMARY, true);
    answers[OtherPlace(serving)] = copy;
    const auto view = JudgePair(answers);
    REQUIRE(view.ok());
    CHECK(view->state == PairState::kAlone);
    CHECK(view->serving == serving);
    CHECK(view->reply.has_variables());
  }
  // It serves nobody when the other one is lost.
  const auto lost = JudgePair({copy, Empty()});
  REQUIRE(lost.ok());
  CHECK_FALSE(lost->reply.has_variables());
}

TEST_CASE("a primary that is deposed is no shard while its copy awaits state") {
  SetViewReply primary = StateOf(PRIMARY, true);
  primary.set_is_deposed(true);
  SetViewReply copy = StateOf(COPY, false);
  copy.set_awaits_state(true);
  CHECK_FALSE(JudgePair({primary, copy})->reply.has_variables());
  copy.set_awaits_state(false);
  CHECK(JudgePair({primary, copy})->state == PairState::kPair);
  CHECK(JudgePair({primary, copy})->reply.has_variables());
  CHECK(JudgePair({primary, StateOf(PRIMARY, false)})->serving == kHost);
}

TEST_CASE("of two that serve in one epoch the one that was promoted has no copy") {
  for (const PlaceIndex promoted : {kHome, kHost}) {
    PlaceAnswers answers;
    answers[promoted] = StateOf(PRIMARY, false);
    answers[OtherPlace(promoted)] = StateOf(PRIMARY, true);
    const auto view = JudgePair(answers);
    REQUIRE(view.ok());
    CHECK(view->state == PairState::kAlone);
    CHECK(view->serving == promoted);
  }
}

TEST_CASE("two that serve and wait for copies are an answer that is outdated") {
  const auto view = JudgePair({StateOf(PRIMARY, true), StateOf(PRIMARY, true)});
  CHECK(absl::IsUnavailable(view.status()));
}

TEST_CASE("one of a pair alone cannot say whether the other has shown more") {
  CHECK(absl::IsUnavailable(JudgePair({StateOf(PRIMARY, true), kAway}).status()));
  CHECK(absl::IsUnavailable(JudgePair({kAway, StateOf(COPY, false)}).status()));
  for (const auto& [primary, copy] :
       {std::pair{StateOf(PRIMARY, true), Empty()}, std::pair{Empty(), StateOf(COPY, false)},
        std::pair{StateOf(PRIMARY, true), StateOf(COPY, false, 2)}}) {
    const auto view = JudgePair({primary, copy});
    REQUIRE(view.ok());
    CHECK(view->state == PairState::kPair);
    CHECK_FALSE(view->reply.has_variables());
    CHECK(view->reply.epoch() == 3);
  }
}

}  // namespace
}  // namespace lockstep::chief
