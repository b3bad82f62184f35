// A gradient that asks for the token and the values of the next step in the same call: what it is
// told and when, and that it never keeps its worker from what the three calls alone would tell.
#include <algorithm>
#include <catch2/catch.hpp>
#include <optional>
#include <random>
#include <vector>

#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::IdentityOf;
using test::kCommand;
using test::Message;
using test::OneVariable;
using test::PlacementOf;
using test::PlanOf;
using test::Reply;
using test::ValuesOf;
using test::ViewOf;

const std::vector<PushStatus> kAccepted = {PushStatus::kAccepted};
const std::vector<PushStatus> kStale = {PushStatus::kStale};

GrantArguments Committing(int64_t step, uint32_t required, bool last = false) {
  return {.command = kCommand,
          .step = GlobalStep(step),
          .required = required,
          .learning_rate = 1,
          .commit = true,
          .last = last};
}

NextStepArguments NextOf(uint32_t worker, int64_t version, uint64_t dequeue_seq) {
  return {.dequeue_seq = DequeueSeq(dequeue_seq),
          .pull = PullArguments{.worker = IdentityOf(worker),
                                .version = GlobalStep(version),
                                .pieces = {{VariableId(0)}}}};
}

Reply<PushPullResult> PushPull(Harness& ps, Message message, NextStepArguments next) {
  Reply<PushPullResult> reply;
  PushPull(&ps.shard, message.Ready(), std::move(next), reply.done());
  return reply;
}

// The gradient {1} of the only variable, as the `step`th of a worker that has missed none.
Reply<PushPullResult> PushPull(Harness& ps, uint32_t worker, int64_t step) {
  const auto count = static_cast<uint64_t>(step) + 1;
  return PushPull(ps, Message(IdentityOf(worker), count, step).Whole(0, Shape({1}), {1}),
                  NextOf(worker, step + 1, count));
}

void CheckVerdictsAlone(const Reply<PushPullResult>& reply,
                        const std::vector<PushStatus>& statuses) {
  REQUIRE(reply.calls() == 1);
  REQUIRE(reply.status().ok());
  CHECK(reply->push.statuses == statuses);
  CHECK_FALSE(reply->token.has_value());
  CHECK_FALSE(reply->values.has_value());
}

void CheckAll(const Reply<PushPullResult>& reply, const std::vector<PushStatus>& statuses,
              int64_t step, float value) {
  REQUIRE(reply.calls() == 1);
  REQUIRE(reply.status().ok());
  CHECK(reply->push.statuses == statuses);
  REQUIRE(reply->token.has_value());
  CHECK(reply->token->step == GlobalStep(step));
  REQUIRE(reply->values.has_value());
  CHECK(reply->values->version == GlobalStep(step));
  CHECK(ValuesOf(reply->values->pieces[0]) == std::vector<float>{value});
}

TEST_CASE("a gradient that counts is answered with token and values when its step is over") {
  Harness ps(OneVariable(2, 2));
  for (int64_t step = 0; step < 5; ++step) {
    const auto closed = ps.Grant(Committing(step, 2));
    const auto first = PushPull(ps, 0, step);
    CHECK(first.IsParked());
    const auto second = PushPull(ps, 1, step);
    const float value = -static_cast<float>(step + 1);
    CheckAll(first, kAccepted, step + 1, value);
    CheckAll(second, kAccepted, step + 1, value);
    CHECK(closed->accepted == 2 * static_cast<uint64_t>(step + 1));
  }
}

TEST_CASE("the token comes with the commit, where a step closes on several shards") {
  Harness ps(PlanOf(PlacementOf({{"a", {1}}, {"b", {1}, 1}}, 2), 1, 1));
  const auto closed = ps.Grant(0, 1);
  const auto reply = PushPull(ps, 0, 0);
  CHECK_FALSE(closed.IsParked());
  CHECK(reply.IsParked());
  CHECK(ps.shard.Report().waiting_dequeues == 1);
  REQUIRE(ps.shard.CommitStep(kCommand, GlobalStep(0), false).ok());
  CheckAll(reply, kAccepted, 1, -1);
}

TEST_CASE("a shard without tokens waits for the version alone") {
  Harness ps;
  REQUIRE(ps.shard.SetView(ViewOf(1, 1)).ok());
  REQUIRE(ps.shard.CreateVariables(PlanOf(PlacementOf({{"a", {1}, 1}, {"b", {1}}}, 2), 1, 1)).ok());
  const auto reply = PushPull(ps, Message(IdentityOf(0), 1, 0).Whole(0, Shape({1}), {1}),
                              NextOf(0, 1, /*dequeue_seq=*/0));
  CHECK(reply.IsParked());
  CHECK(ps.shard.Report().waiting_pulls == 1);
  ps.Grant(0, 1);
  REQUIRE(reply.calls() == 1);
  CHECK(reply->push.statuses == kAccepted);
  CHECK_FALSE(reply->token.has_value());
  CHECK(ValuesOf(reply->values->pieces[0]) == std::vector<float>{-1});
}

TEST_CASE("a wish for a token at a shard that has none does not hold up the statuses") {
  Harness ps;
  REQUIRE(ps.shard.SetView(ViewOf(1, 1)).ok());
  REQUIRE(ps.shard.CreateVariables(PlanOf(PlacementOf({{"a", {1}, 1}, {"b", {1}}}, 2), 1, 1)).ok());
  CheckVerdictsAlone(PushPull(ps, 0, 0), kAccepted);
}

TEST_CASE("a gradient of a step that is over is answered at once, with what there is") {
  Harness ps(OneVariable(2, 1));
  ps.Grant(Committing(0, 1));
  CheckAll(PushPull(ps, 0, 0), kAccepted, 1, -1);
  CheckAll(PushPull(ps, 1, 0), kStale, 1, -1);
}

TEST_CASE("a gradient of which a variable is stale is answered at once while its step is open") {
  Harness ps(PlanOf(PlacementOf({{"a", {1}}, {"b", {1}}}), 3, 2));
  ps.Grant(Committing(0, 2));
  ps.Push(0, 1, 0, 0, {1});
  ps.Push(1, 1, 0, 0, {1});
  const auto reply =
      PushPull(ps, Message(IdentityOf(2), 1, 0).Whole(0, Shape({1}), {1}).Whole(1, Shape({1}), {1}),
               NextOf(2, 1, 1));
  CheckVerdictsAlone(reply, {PushStatus::kStale, PushStatus::kAccepted});
}

TEST_CASE("what has not come whole, and what is only asked about, is answered at once") {
  Harness ps(PlanOf(PlacementOf({{"a", {2}}}), 1, 1));
  const std::vector<float> gradient = {1, 1};
  CheckVerdictsAlone(PushPull(ps, Message(IdentityOf(0), 1, 0).Chunk(0, Shape({2}), gradient, 0, 4),
                              NextOf(0, 1, 1)),
                     {PushStatus::kPending});
  ps.Push(0, 1, 0, 0, gradient);
  CheckVerdictsAlone(PushPull(ps, Message(IdentityOf(0), 1, 0).Ask(0), NextOf(0, 1, 1)), kAccepted);
  CHECK(ps.shard.Report().waiting_dequeues == 0);
}

TEST_CASE("a gradient that is refused is answered with the error") {
  Harness ps(OneVariable());
  const auto reply =
      PushPull(ps, Message(IdentityOf(0), 1, 0).Whole(0, Shape({2}), {1, 1}), NextOf(0, 1, 1));
  REQUIRE(reply.calls() == 1);
  CHECK(absl::IsInvalidArgument(reply.status()));
  CHECK(ps.shard.Report().waiting_dequeues == 0);
}

TEST_CASE("a pull that is refused costs neither the statuses nor the token") {
  Harness ps(OneVariable());
  ps.Grant(Committing(0, 1));
  NextStepArguments next = NextOf(0, 1, 1);
  next.pull->pieces = {{VariableId(7)}};
  const auto reply =
      PushPull(ps, Message(IdentityOf(0), 1, 0).Whole(0, Shape({1}), {1}), std::move(next));
  REQUIRE(reply.calls() == 1);
  REQUIRE(reply.status().ok());
  CHECK(reply->push.statuses == kAccepted);
  CHECK(reply->token.has_value());
  CHECK_FALSE(reply->values.has_value());
}

TEST_CASE("a call that lost its caller is overtaken by the calls that the worker makes alone") {
  for (const uint32_t shard : {0, 1}) {
    Harness ps;
    REQUIRE(ps.shard.SetView(ViewOf(2, shard)).ok());
    REQUIRE(ps.shard
                .CreateVariables(
                    PlanOf(PlacementOf({{"a", {1}, shard}, {"b", {1}, 1 - shard}}, 2), 2, 2))
                .ok());
    ps.Grant(0, 2);
    const uint64_t dequeue_seq = shard == 0 ? 1 : 0;
    const auto lost = PushPull(ps, Message(IdentityOf(0), 1, 0).Whole(0, Shape({1}), {1}),
                               NextOf(0, 1, dequeue_seq));
    CHECK(lost.IsParked());
    // The verdict is to be had meanwhile, and counts once.
    CHECK(ps.shard.Push(Message(IdentityOf(0), 1, 0).Ask(0).Ready())->statuses == kAccepted);
    CHECK(ps.Push(0, 1, 0, 0, {1}) == PushStatus::kAccepted);
    const auto values = ps.Pull(0, 1, {{VariableId(0)}});
    std::optional<Reply<Token>> token;
    if (shard == 0) token = ps.Dequeue(0, 1);
    CheckVerdictsAlone(lost, kAccepted);
    CHECK(values.IsParked());
    ps.Push(1, 1, 0, 0, {3});
    REQUIRE_FALSE(values.IsParked());
    CHECK(ValuesOf(values->pieces[0]) == std::vector<float>{-2});
    if (shard != 0) continue;
    CHECK(token->IsParked());
    REQUIRE(ps.shard.CommitStep(kCommand, GlobalStep(0), false).ok());
    CHECK((*token)->step == GlobalStep(1));
    CHECK(lost.calls() == 1);
  }
}

TEST_CASE("the same call again waits in the place of the first, and the gradient counts once") {
  Harness ps(OneVariable(2, 2));
  ps.Grant(Committing(0, 2));
  const auto first = PushPull(ps, 0, 0);
  const auto again = PushPull(ps, 0, 0);
  CheckVerdictsAlone(first, kAccepted);
  CHECK(again.IsParked());
  PushPull(ps, 1, 0);
  CheckAll(again, kAccepted, 1, -1);
  // And after the end: the same token, the same values.
  CheckAll(PushPull(ps, 0, 0), kAccepted, 1, -1);
}

TEST_CASE("a worker that leaves the view while its call waits is told the statuses") {
  Harness ps(OneVariable(2, 2));
  ps.Grant(Committing(0, 2));
  const auto reply = PushPull(ps, 0, 0);
  View view = ViewOf(2);
  view.members.erase(view.members.begin());
  REQUIRE(ps.shard.SetView(view).ok());
  CheckVerdictsAlone(reply, kAccepted);
}

TEST_CASE("another epoch, and a ps that stops, answer what waits with the statuses") {
  Harness ps(OneVariable(2, 2));
  const auto before = PushPull(ps, 0, 0);
  View view = ViewOf(2);
  view.epoch = Epoch(2);
  REQUIRE(ps.shard.SetView(view).ok());
  CheckVerdictsAlone(before, kAccepted);

  Harness stopping(OneVariable(2, 2));
  const auto waiting = PushPull(stopping, 0, 0);
  stopping.shard.Stop();
  CheckVerdictsAlone(waiting, kAccepted);
}

TEST_CASE("the end of the job reaches whoever waits, and a last step brings its values") {
  Harness ended(OneVariable(2, 2));
  const auto waiting = PushPull(ended, 0, 0);
  REQUIRE(ended.shard.Finish(kCommand).ok());
  REQUIRE(waiting.calls() == 1);
  CHECK(waiting->push.statuses == kAccepted);
  CHECK(waiting->token->done);
  CHECK_FALSE(waiting->values.has_value());
  // A worker that did not know yet.
  const auto late = PushPull(ended, 1, 0);
  CheckVerdictsAlone(late, kStale);

  Harness ps(OneVariable());
  ps.Grant(Committing(0, 1, /*last=*/true));
  const auto last = PushPull(ps, 0, 0);
  REQUIRE(last.calls() == 1);
  CHECK(last->token->done);
  CHECK(ValuesOf(last->values->pieces[0]) == std::vector<float>{-1});
}

TEST_CASE("a token of a step that is still open comes at once: its holder may have to push again") {
  Harness ps(OneVariable(1, 2, FIFO));
  ps.Grant(Committing(0, 2));
  const auto first = PushPull(ps, 0, 0);
  REQUIRE(first.calls() == 1);
  CHECK(first->push.statuses == kAccepted);
  CHECK(first->token->step == GlobalStep(0));
  CHECK_FALSE(first->values.has_value());
  const auto second =
      PushPull(ps, Message(IdentityOf(0), 2, 0).Whole(0, Shape({1}), {1}), NextOf(0, 1, 2));
  REQUIRE(second.calls() == 1);
  CHECK(second->token->step == GlobalStep(0));
  CHECK(ps.Read(1, 0) == std::vector<float>{-1});
}

TEST_CASE("a step that a chief takes back and another one grants again ends for those who wait") {
  Harness ps(OneVariable(2, 2));
  ps.Grant(Committing(0, 2));
  const auto first = PushPull(ps, 0, 0);
  View view = ViewOf(2);
  view.command.set_term(2);
  REQUIRE(ps.shard.SetView(view).ok());
  const auto second = PushPull(ps, 1, 0);
  CHECK(first.IsParked());
  CHECK(second.IsParked());
  GrantArguments grant = Committing(0, 2);
  grant.command = view.command;
  ps.Grant(grant);
  CheckAll(first, kAccepted, 1, -1);
  CheckAll(second, kAccepted, 1, -1);
}

// Replicas that take now the one way and now the other, some of them too late, with calls repeated.
TEST_CASE("joined or alone, every replica is told the same and the values are the same") {
  for (uint32_t seed = 0; seed < 200; ++seed) {
    std::mt19937 random(seed);
    const auto chance = [&random](uint32_t of) { return random() % of == 0; };
    constexpr uint32_t kWorkers = 4;
    const uint32_t required = 2 + random() % 3;
    Harness ps(OneVariable(kWorkers, required));
    for (int64_t step = 0; step < 6; ++step) {
      ps.Grant(Committing(step, required));
      std::vector<uint32_t> arguments = {0, 1, 2, 3};
      std::shuffle(arguments.begin(), arguments.end(), random);
      const float value = -static_cast<float>(step + 1);
      std::vector<Reply<PushPullResult>> waiting;
      uint32_t pushed = 0;
      for (const uint32_t worker : arguments) {
        const bool is_late = pushed >= required;
        const auto count = static_cast<uint64_t>(step) + 1;
        const std::vector<PushStatus>& verdict = is_late ? kStale : kAccepted;
        ++pushed;
        if (chance(2)) {
          CHECK(ps.Push(worker, count, step, 0, {1}) == verdict[0]);
          const auto token = ps.Dequeue(worker, count);
          const auto values = ps.Pull(worker, step + 1, {{VariableId(0)}});
          CHECK(token.IsParked() == (pushed < required));
          CHECK(values.IsParked() == (pushed < required));
          continue;
        }
        const auto reply = PushPull(ps, worker, step);
        CHECK(reply.IsParked() == (pushed < required));
        if (is_late) {
          CheckAll(reply, kStale, step + 1, value);
        } else if (chance(3)) {
          waiting.push_back(PushPull(ps, worker, step));
          if (pushed < required) CheckVerdictsAlone(reply, kAccepted);
        } else {
          waiting.push_back(reply);
        }
      }
      for (const auto& reply : waiting) CheckAll(reply, kAccepted, step + 1, value);
      CHECK(ps.Read(step + 1, 0) == std::vector<float>{value});
    }
  }
}

}  // namespace
}  // namespace lockstep::ps
