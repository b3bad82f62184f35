// A shard whose copy another one keeps: what it shows when, and how the copy takes its place.
#include <catch2/catch.hpp>
#include <map>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "tests/unit/ps/shard/copy_pair.h"

namespace lockstep::ps {
namespace {

using test::Deliver;
using test::HeldMeans;
using test::IdentityOf;
using test::kCommand;
using test::kCopyAddress;
using test::Message;
using test::Pair;
using test::PairWithIdleSteps;
using test::PlanOfPair;
using test::Primary;

TEST_CASE("a primary shows what a step made when its copy has the means") {
  Pair pair;
  CHECK(pair.target->options.address == kCopyAddress);
  const auto grant = pair.primary.Grant(0, 2, 0.5f);
  const auto pull = pair.primary.Pull(0, 1, {{VariableId(0)}});
  for (const uint32_t worker : {0u, 1u}) {
    CHECK(pair.primary.Push(worker, 1, 0, 0, {2, 4.0f * worker}) == PushStatus::kAccepted);
  }
  CHECK(pair.primary.Push(0, 1, 0, 1, {1}) == PushStatus::kAccepted);
  REQUIRE(pair.target->sent.size() == 1);
  HeldMeans::Sent a = std::move(pair.target->sent[0]);
  REQUIRE(a.means.gradients.size() == 1);
  CHECK(a.means.step == GlobalStep(0));
  CHECK(a.means.learning_rate == 0.5f);
  CHECK(static_cast<const float*>(a.means.gradients[0].values.data)[1] == 2);
  CHECK(pull.IsParked());

  const auto delivered = Deliver(a.means, &pair.copy.shard);
  REQUIRE(delivered.ok());
  CHECK(delivered->statuses[0] == PushStatus::kAccepted);
  a.taken(absl::OkStatus());
  REQUIRE_FALSE(pull.IsParked());
  CHECK(test::ValuesOf(pull->pieces[0]) == std::vector<float>{-1, -1});

  CHECK(pair.primary.Push(1, 1, 0, 1, {3}) == PushStatus::kAccepted);
  CHECK(grant.IsParked());
  REQUIRE(pair.target->sent.size() == 2);
  std::exchange(pair.target->sent[1].taken, nullptr)(absl::OkStatus());
  CHECK_FALSE(grant.IsParked());
}

TEST_CASE("a copy that becomes the primary goes on in the middle of a step, with the same values") {
  Pair pair;
  const auto lost = pair.primary.Grant(0, 2, 0.5f);
  for (const uint32_t worker : {0u, 1u}) pair.primary.Push(worker, 1, 0, 0, {2, 4.0f * worker});
  REQUIRE(Deliver(pair.target->sent[0].means, &pair.copy.shard).ok());
  const absl::Status early =
      pair.copy.shard.Push(Message(IdentityOf(0), 1, 0).Whole(1, Shape({1}), {1}).Ready()).status();
  CHECK(absl::IsUnavailable(early));
  CHECK(absl::StrContains(early.message(), "keeps a copy of shard 0"));

  REQUIRE(pair.Promote(0).ok());
  CHECK_FALSE(pair.copy.shard.GetView().is_copy);
  // Its primary changes nothing any more.
  CHECK_FALSE(Deliver(pair.target->sent[0].means, &pair.copy.shard).ok());
  // The workers send all again. "a" has been closed by its mean, "b" needs both, under a new grant.
  CHECK(pair.copy.Push(0, 1, 0, 0, {2, 0}) == PushStatus::kAccepted);
  CHECK(pair.copy.Push(0, 1, 0, 1, {1}) == PushStatus::kAccepted);
  const auto grant = pair.copy.Grant(0, 2, 0.5f);
  CHECK(grant.IsParked());
  CHECK(pair.copy.Push(1, 1, 0, 1, {3}) == PushStatus::kAccepted);
  REQUIRE_FALSE(grant.IsParked());
  CHECK(pair.copy.Read(1, 0) == std::vector<float>{-1, -1});
  CHECK(pair.copy.Read(1, 1) == std::vector<float>{-1});
}

TEST_CASE("tokens of a copy that becomes the primary are those of the next step for who pushed") {
  Pair pair;
  pair.primary.Grant(0, 2);
  pair.PushStep();
  pair.DeliverAll();
  REQUIRE(pair.Promote(0).ok());
  test::Reply<Token> token;
  pair.copy.shard.DequeueToken({IdentityOf(0), DequeueSeq(5), GlobalStep(0)}, token.done());
  CHECK(token.IsParked());
  // The step was closed by its means: the chief commits it again.
  REQUIRE_FALSE(pair.copy.Grant(0, 2).IsParked());
  REQUIRE(pair.copy.shard.CommitStep(kCommand, GlobalStep(0), false).ok());
  REQUIRE_FALSE(token.IsParked());
  CHECK(token->step == GlobalStep(1));
  // A worker that has not pushed begins there, too.
  CHECK(pair.copy.Dequeue(1, 1)->step == GlobalStep(1));
}

TEST_CASE("steps that the chief has seen committed are committed at a promoted copy") {
  Pair pair;
  pair.primary.Grant(0, 2);
  pair.PushStep();
  pair.DeliverAll();
  const auto state = pair.Promote(1);
  REQUIRE(state.ok());
  CHECK(state->global_step == GlobalStep(1));
  CHECK(pair.copy.Dequeue(0, 2)->step == GlobalStep(1));
}

TEST_CASE("a step without gradients closes when the copy knows of it") {
  Pair pair(PairWithIdleSteps());
  pair.primary.Grant(0, 2);
  pair.PushStep();
  pair.CopyAll();
  REQUIRE(pair.primary.shard.GetView().shard_step == GlobalStep(1));

  const auto grant = pair.primary.Grant(1, 2);
  CHECK(grant.IsParked());
  REQUIRE(pair.target->sent.size() == 1);
  CHECK(pair.target->sent[0].means.step == GlobalStep(1));
  CHECK(pair.target->sent[0].means.gradients.empty());

  SECTION("it is told, and both go on") {
    const auto delivered = Deliver(pair.target->sent[0].means, &pair.copy.shard);
    REQUIRE(delivered.ok());
    CHECK(delivered->shard_step == GlobalStep(2));
    std::exchange(pair.target->sent[0].taken, nullptr)(absl::OkStatus());
    CHECK_FALSE(grant.IsParked());
    CHECK(pair.primary.shard.GetView().shard_step == GlobalStep(2));
  }
  SECTION("the grant comes again, and it is told once") {
    const auto again = pair.primary.Grant(1, 2);
    CHECK(again.IsParked());
    REQUIRE(pair.target->sent.size() == 1);
    std::exchange(pair.target->sent[0].taken, nullptr)(absl::OkStatus());
    CHECK_FALSE(again.IsParked());
    CHECK(pair.primary.shard.GetView().shard_step == GlobalStep(2));
  }
  SECTION("another chief's grant comes after the copy's answer") {
    View view = test::ViewOf(2);
    view.command.set_term(view.command.term() + 1);
    view.copy_address = kCopyAddress;
    REQUIRE(pair.primary.shard.SetView(view).ok());
    std::exchange(pair.target->sent[0].taken, nullptr)(absl::OkStatus());
    CHECK(pair.primary.shard.GetView().shard_step == GlobalStep(1));
    const auto again = pair.primary.Grant({.command = view.command, .step = GlobalStep(1)});
    REQUIRE(pair.target->sent.size() == 2);
    std::exchange(pair.target->sent[1].taken, nullptr)(absl::OkStatus());
    CHECK_FALSE(again.IsParked());
  }
  SECTION("the primary goes on alone") {
    REQUIRE(pair.primary.shard.SetView(test::ViewOf(2)).ok());
    CHECK_FALSE(grant.IsParked());
    CHECK(pair.primary.shard.GetView().shard_step == GlobalStep(2));
  }
}

TEST_CASE("a primary that goes on alone shows what waits") {
  Pair pair;
  const auto grant = pair.primary.Grant(0, 2);
  pair.PushStep();
  CHECK(grant.IsParked());
  CHECK(pair.primary.shard.GetView().has_copy);
  REQUIRE(pair.primary.shard.SetView(test::ViewOf(2)).ok());
  CHECK_FALSE(grant.IsParked());
  CHECK_FALSE(pair.primary.shard.GetView().has_copy);
}

TEST_CASE("a new copy begins with the first step that finds its target ready") {
  const auto target = std::make_shared<HeldMeans>();
  target->is_ready = false;
  test::Harness primary(PlanOfPair(), {.make_copy_target = [&](const auto&) { return target; }});
  View view = test::ViewOf(2);
  view.copy_address = kCopyAddress;
  view.makes_copy = true;
  REQUIRE(primary.shard.SetView(view).ok());
  for (int64_t step = 0; step < 3; ++step) {
    if (step == 2) target->is_ready = true;
    const auto grant = primary.Grant(step, 2);
    for (const uint32_t worker : {0u, 1u}) {
      primary.Push(worker, static_cast<uint64_t>(step) + 1, step, 0, {1, 1});
      primary.Push(worker, static_cast<uint64_t>(step) + 1, step, 1, {1});
    }
    CHECK_FALSE(grant.IsParked());
    CHECK(target->begun.has_value() == (step == 2));
  }
  CHECK(target->begun == GlobalStep(3));
  target->End(absl::CancelledError("over"));
}

TEST_CASE("a primary that goes on alone stays so until it is told to make a new copy") {
  Pair pair;
  REQUIRE(pair.primary.shard.SetView(test::ViewOf(2)).ok());
  // Of a chief that takes over, and has seen the pair before.
  View view = test::ViewOf(2);
  view.command.set_term(view.command.term() + 1);
  view.copy_address = kCopyAddress;
  REQUIRE(pair.primary.shard.SetView(view).ok());
  CHECK_FALSE(pair.primary.shard.GetView().has_copy);
  // And again, as if its answer had been lost.
  ++view.number;
  REQUIRE(pair.primary.shard.SetView(view).ok());
  CHECK_FALSE(pair.primary.shard.GetView().has_copy);
  ++view.number;
  view.makes_copy = true;
  REQUIRE(pair.primary.shard.SetView(view).ok());
  CHECK(pair.primary.shard.GetView().has_copy);
}

TEST_CASE("a late order does not make a copy of a shard that serves the workers") {
  Pair pair;
  REQUIRE(pair.Promote(0).ok());
  View late = test::ViewOf(0);
  late.is_copy = true;
  CHECK(absl::IsAborted(pair.copy.shard.SetView(late).status()));
}

TEST_CASE("a primary whose copy has taken its place becomes a copy without variables") {
  Pair pair;
  const bool knows_it = GENERATE(true, false);
  if (knows_it) pair.target->options.refused(absl::AbortedError("not a member"));
  const auto pull = pair.primary.Pull(0, 1, {{VariableId(0)}});
  View copys = test::ViewOf(0);
  copys.is_copy = true;
  const auto state = pair.primary.shard.SetView(copys);
  REQUIRE(state.ok());
  CHECK(state->is_copy);
  CHECK_FALSE(state->has_variables);
  CHECK(absl::IsUnavailable(pull.status()));
  CreateVariablesRequest plan = PlanOfPair();
  plan.set_awaits_state(true);
  REQUIRE(pair.primary.shard.CreateVariables(plan).ok());
  CHECK(pair.primary.shard.GetView().awaits_state);
}

TEST_CASE("a primary whose copy has taken its place shows nothing more, and sends workers away") {
  Pair pair;
  const auto pull = pair.primary.Pull(0, 1, {{VariableId(0)}});
  pair.target->options.refused(absl::AbortedError("not a member"));
  CHECK(absl::IsUnavailable(pull.status()));
  CHECK(absl::IsUnavailable(pair.primary.Pull(0, 0, {{VariableId(0)}}).status()));
  // Until another epoch.
  View next = test::ViewOf(2);
  next.epoch = Epoch(2);
  REQUIRE(pair.primary.shard.SetView(next).ok());
  REQUIRE(pair.primary.shard.CreateVariables(PlanOfPair()).ok());
}

TEST_CASE("a mean is taken by a copy alone, and a copy takes nothing else") {
  Pair pair;
  Message mean(IdentityOf(0), 1, 0);
  mean.Whole(1, Shape({1}), {1}).arguments().mean = MeanArguments{.learning_rate = 1};
  CHECK(absl::IsInvalidArgument(pair.primary.shard.Push(mean.Ready()).status()));
  Message gradient(Primary(), 1, 0);
  gradient.Whole(1, Shape({1}), {1});
  CHECK(absl::IsInvalidArgument(pair.copy.shard.Push(gradient.Ready()).status()));
}

}  // namespace
}  // namespace lockstep::ps
