// A gradient, the values made of it and the token in one call, over every implementation of PsData.
#include <catch2/catch.hpp>
#include <utility>

#include "tests/conformance/two_variables.h"

namespace lockstep {
namespace {

// What a worker sends that has the gradients of both variables, for the next step.
PushRequest BothAndNext(uint32_t worker, int64_t step) {
  PushRequest push = PushOf(worker, step, 0, 3, 0, 3);
  *push.add_pieces() = PushOf(worker, step, 1, 1000, 0, 1000).pieces(0);
  push.mutable_next()->set_dequeue_seq(static_cast<uint64_t>(step) + 1);
  *push.mutable_next()->mutable_pull() = PullOf(worker, step + 1, 0);
  push.mutable_next()->mutable_pull()->clear_worker();
  return push;
}

TEST_CASE("A gradient that asks for it is answered with token and values when its step is over") {
  Ps ps;
  const std::vector<float> small = {1, 2, 3}, large(1000, 1);
  for (int64_t step : {0, 1, 2}) {
    Answer<GrantReply> closed;
    ps.control()->Call(kGrant, Granted(step), closed.done());
    std::vector<Answer<PushPullReply>> answers(2);
    for (uint32_t worker : {0, 1}) {
      CHECK_FALSE(answers[0].answered());
      ps.data()->PushPull(BothAndNext(worker, step), {BytesOf(small), BytesOf(large)},
                          answers[worker].done());
    }
    for (Answer<PushPullReply>& answer : answers) {
      const auto reply = answer.Wait();
      INFO(reply.status());
      REQUIRE(reply.ok());
      REQUIRE(reply->push.outcomes_size() == 2);
      CHECK(reply->push.outcomes(0).verdict() == ACCEPTED);
      CHECK(reply->push.outcomes(1).variable() == 1);
      CHECK(reply->push.outcomes(1).verdict() == ACCEPTED);
      REQUIRE(reply->push.next().has_token());
      CHECK(reply->push.next().token().step() == step + 1);
      REQUIRE(reply->values != nullptr);
      CHECK(reply->values->header().version() == step + 1);
      std::vector<float> values(3);
      const std::vector<std::span<std::byte>> targets = {std::as_writable_bytes(std::span(values))};
      REQUIRE(reply->values->CopyTo(targets).ok());
      CHECK(values == ps.PullV0(step + 1));
    }
    CHECK(closed.Wait()->accepted() == 4 * static_cast<uint64_t>(step + 1));
  }
  // The same call again, when all is over: the same token.
  const auto again = Await<PushPullReply>([&](auto done) {
    ps.data()->PushPull(BothAndNext(0, 2), {BytesOf(small), BytesOf(large)}, std::move(done));
  });
  REQUIRE(again.ok());
  CHECK(again->push.next().token().step() == 3);
}

TEST_CASE("A gradient that comes too late is answered at once, whatever it asks for") {
  Ps ps;
  ps.CloseStep(0);
  PushRequest late = BothAndNext(0, 0);
  late.set_push_seq(9);
  const std::vector<float> small = {1, 2, 3}, large(1000, 1);
  const auto reply = Await<PushPullReply>([&](auto done) {
    ps.data()->PushPull(late, {BytesOf(small), BytesOf(large)}, std::move(done));
  });
  REQUIRE(reply.ok());
  CHECK(reply->push.outcomes(0).verdict() == STALE);
  CHECK(reply->push.next().token().step() == 1);
  REQUIRE(reply->values != nullptr);
  CHECK(reply->values->header().version() == 1);
}

TEST_CASE("Who waits for the end of a step is told the verdicts when the job ends") {
  Ps ps;
  const std::vector<float> small = {1, 2, 3}, large(1000, 1);
  Answer<PushPullReply> waiting;
  ps.data()->PushPull(BothAndNext(0, 0), {BytesOf(small), BytesOf(large)}, waiting.done());
  // Meanwhile the outcome is to be had.
  PushRequest ask = BothAndNext(0, 0);
  ask.set_ask(true);
  while (ps.Push(ask, {})->outcomes(1).verdict() == PENDING) continue;
  CHECK_FALSE(waiting.answered());
  REQUIRE(CallAndWait(*ps.control(), kFinish, JobIsOver()).ok());
  const auto reply = waiting.Wait();
  REQUIRE(reply.ok());
  CHECK(reply->push.outcomes(0).verdict() == ACCEPTED);
  CHECK(reply->push.next().token().done());
  CHECK(reply->values == nullptr);
}

TEST_CASE("A ps goes on when a client goes that waits for the end of a step") {
  Ps ps;
  const std::vector<float> small = {1, 2, 3}, large(1000, 1);
  Answer<PushPullReply> lost;
  {
    const auto client = ps.ps()->NewData();
    client->PushPull(BothAndNext(0, 0), {BytesOf(small), BytesOf(large)}, lost.done());
    PushRequest ask = BothAndNext(0, 0);
    ask.set_ask(true);
    ask.clear_next();
    const auto is_pending = [&] {
      return Await<PushReply>([&](auto done) { client->Push(ask, {}, std::move(done)); })
                 ->outcomes(1)
                 .verdict() == PENDING;
    };
    while (is_pending()) continue;
  }
  CHECK(absl::IsCancelled(lost.Wait().status()));
  ps.CloseStep(0);
  CHECK(ps.PullV0(1).size() == 3);
}

}  // namespace
}  // namespace lockstep
