// Grants, versions, commits, tokens and the end, as the chief and the workers see them.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::IdentityOf;
using test::kJob;
using test::Message;
using test::PlacementOf;
using test::PlanOf;
using test::Reply;

VariablePlan OneVariable(uint32_t total = 1, uint32_t aggregate = 1,
                         TokenPolicy policy = PER_REPLICA) {
  return PlanOf(PlacementOf({{"w", {1}}}), total, aggregate, policy);
}

const Command kCommand{kJob, Term(1)};

TEST_CASE("a shard tells what it is before and after it has variables") {
  Harness h;
  CHECK(h.shard.GetView().job == 0);
  CHECK(absl::IsFailedPrecondition(h.shard.CreateVariables(OneVariable()).status()));
  CHECK(absl::IsFailedPrecondition(h.Grant(0, 1).status()));
  const auto state = h.shard.SetView(test::ViewOf(1));
  REQUIRE(state.ok());
  CHECK(state->job == kJob);
  CHECK_FALSE(state->has_variables);
  CHECK(absl::IsFailedPrecondition(h.Pull(0, 0, {{VariableId(0)}}).status()));
  CHECK(absl::IsFailedPrecondition(h.Dequeue(0, 1).status()));
  VariablePlan plan = OneVariable();
  plan.start_step = GlobalStep(40);
  CHECK(*h.shard.CreateVariables(plan) == 4);
  CHECK(*h.shard.CreateVariables(plan) == 4);
  CHECK(h.shard.GetView().shard_step == GlobalStep(40));
  CHECK(h.shard.GetView().global_step == GlobalStep(40));
  plan.seed = 1;
  CHECK(absl::IsFailedPrecondition(h.shard.CreateVariables(plan).status()));
}

TEST_CASE("a plan that cannot work is refused and another may follow") {
  Harness h;
  REQUIRE(h.shard.SetView(test::ViewOf(2)).ok());
  CHECK(absl::IsInvalidArgument(h.shard.CreateVariables(OneVariable(2, 0)).status()));
  CHECK(absl::IsInvalidArgument(h.shard.CreateVariables(OneVariable(2, 3)).status()));
  VariablePlan plan = OneVariable(1, 2, FIFO);
  plan.init_tokens = 0;
  CHECK(absl::IsInvalidArgument(h.shard.CreateVariables(plan).status()));
  plan = OneVariable();
  plan.optimizer.Clear();
  CHECK(absl::IsInvalidArgument(h.shard.CreateVariables(plan).status()));
  plan = OneVariable();
  plan.restore_from = "/nowhere/ckpt-1";
  CHECK_FALSE(h.shard.CreateVariables(plan).ok());
  CHECK(h.shard.CreateVariables(OneVariable()).ok());
}

TEST_CASE("two grants may be parked; each is answered when its step closes") {
  Harness h(OneVariable());
  const auto first = h.Grant(0, 1, 1.0f);
  const auto second = h.Grant(1, 1, 0.5f);
  CHECK(absl::IsFailedPrecondition(h.Grant(2, 1).status()));
  CHECK(absl::IsInvalidArgument(h.Grant(0, 0).status()));
  h.Push(0, 1, 0, 0, {1});
  REQUIRE_FALSE(first.IsParked());
  CHECK(second.IsParked());
  h.Push(0, 2, 1, 0, {1});
  REQUIRE_FALSE(second.IsParked());
  CHECK(second->shard_step == GlobalStep(2));
  CHECK(h.Read(2, 0)[0] == -1.5f);
}

TEST_CASE("a grant given again replaces the parked call, and a closed step answers at once") {
  Harness h(OneVariable());
  const auto first = h.Grant(0, 1, 1.0f);
  const auto again = h.Grant(0, 1, 2.0f);
  CHECK(absl::IsCancelled(first.status()));
  h.Push(0, 1, 0, 0, {1});
  REQUIRE_FALSE(again.IsParked());
  CHECK(h.Read(1, 0)[0] == -2);
  const auto late = h.Grant(0, 1);
  REQUIRE_FALSE(late.IsParked());
  CHECK(late->shard_step == GlobalStep(1));
  CHECK(first.calls() == 1);
  CHECK(again.calls() == 1);
}

TEST_CASE("a grant that comes late closes the step with everything that is held") {
  Harness h(OneVariable(3, 2));
  for (uint32_t worker = 0; worker < 3; ++worker) {
    CHECK(h.Push(worker, 1, 0, 0, {3.0f * worker}) == Verdict::kAccepted);
  }
  const auto closed = h.Grant(0, 2, 1.0f);
  REQUIRE_FALSE(closed.IsParked());
  CHECK(h.Read(1, 0)[0] == -3);
  CHECK(closed->accepted == 3);
}

TEST_CASE("a pull waits for its version and gets exactly it") {
  Harness h(PlanOf(PlacementOf({{"a", {2}}, {"b", {3}}}), 1, 1));
  const auto both = h.Pull(0, 1, {{VariableId(1)}, {VariableId(0), 4, 4}});
  const auto only_b = h.Pull(0, 1, {{VariableId(1), 4, 0}});
  h.Grant(0, 1, 1.0f);
  h.Push(0, 1, 0, 1, {1, 2, 3});
  CHECK(both.IsParked());
  REQUIRE_FALSE(only_b.IsParked());
  CHECK(only_b->version == GlobalStep(1));
  CHECK(test::ValuesOf(only_b->pieces[0]) == std::vector<float>{-2, -3});
  CHECK(only_b->pieces[0].offset == 4);
  // Of both variables there is version 0 alone while one of them lags.
  const auto old = h.Pull(0, 0, {{VariableId(0)}, {VariableId(1)}});
  REQUIRE_FALSE(old.IsParked());
  CHECK(old->version == GlobalStep(0));
  CHECK(test::ValuesOf(old->pieces[1]) == std::vector<float>{0, 0, 0});
  h.Push(0, 1, 0, 0, {5, 6});
  REQUIRE_FALSE(both.IsParked());
  CHECK(test::ValuesOf(both->pieces[0]) == std::vector<float>{-1, -2, -3});
  CHECK(test::ValuesOf(both->pieces[1]) == std::vector<float>{-6});
}

TEST_CASE("a version that is kept no longer is answered with the newest, one for all pieces") {
  Harness h(PlanOf(PlacementOf({{"a", {1}}, {"b", {1}}}), 1, 1));
  for (int64_t step = 0; step < 3; ++step) {
    h.Grant(step, 1, 1.0f);
    h.Push(0, step + 1, step, 1, {1});
    if (step == 2) break;
    h.Push(0, step + 1, step, 0, {1});
  }
  // b is at version 3, a at 2.
  const auto pulled = h.Pull(0, 0, {{VariableId(0)}, {VariableId(1)}});
  REQUIRE_FALSE(pulled.IsParked());
  CHECK(pulled->version == GlobalStep(2));
  CHECK(test::ValuesOf(pulled->pieces[0])[0] == -2);
  CHECK(test::ValuesOf(pulled->pieces[1])[0] == -2);
  CHECK(h.Pull(0, 1, {{VariableId(1)}})->version == GlobalStep(3));
}

TEST_CASE("the same pull again replaces the parked one; others stay") {
  Harness h(OneVariable(2, 1));
  const auto first = h.Pull(0, 1, {{VariableId(0)}});
  const auto other_worker = h.Pull(1, 1, {{VariableId(0)}});
  const auto other_version = h.Pull(0, 2, {{VariableId(0)}});
  const auto again = h.Pull(0, 1, {{VariableId(0)}});
  CHECK(absl::IsCancelled(first.status()));
  CHECK(h.shard.Report().waiting_pulls == 3);
  h.Grant(0, 1, 1.0f);
  h.Push(0, 1, 0, 0, {1});
  CHECK(again.status().ok());
  CHECK(other_worker.status().ok());
  CHECK(other_version.IsParked());
  CHECK(first.calls() == 1);
}

TEST_CASE("malformed pulls are refused") {
  Harness h(OneVariable());
  CHECK(absl::IsInvalidArgument(h.Pull(0, 0, {}).status()));
  CHECK(absl::IsInvalidArgument(h.Pull(0, 0, {{VariableId(1)}}).status()));
  CHECK(absl::IsInvalidArgument(h.Pull(0, 0, {{VariableId(0), 5, 0}}).status()));
  CHECK(absl::IsInvalidArgument(h.Pull(0, 0, {{VariableId(0), 2, 3}}).status()));
  CHECK(absl::IsInvalidArgument(h.Pull(0, 0, {{VariableId(0), 2, ~uint64_t{0}}}).status()));
  CHECK(absl::IsFailedPrecondition(h.Pull(3, 0, {{VariableId(0)}}).status()));
}

TEST_CASE("a reader's values stay as they are while steps go on") {
  Harness h(OneVariable());
  const auto read = h.Pull(0, 0, {{VariableId(0)}});
  for (int64_t step = 0; step < 5; ++step) {
    h.Grant(step, 1, 1.0f);
    h.Push(0, step + 1, step, 0, {1});
  }
  CHECK(test::ValuesOf(read->pieces[0])[0] == 0);
  CHECK(h.Read(5, 0)[0] == -5);
}

TEST_CASE("the commit moves the step and hands out the tokens") {
  Harness h(OneVariable(2, 2));
  const auto token = h.Dequeue(0, 1);
  h.Grant(0, 2, 1.0f);
  h.Push(0, 1, 0, 0, {1});
  CHECK(absl::IsFailedPrecondition(h.shard.CommitStep(kCommand, GlobalStep(0), false).status()));
  h.Push(1, 1, 0, 0, {1});
  CHECK(token.IsParked());
  CHECK(*h.shard.CommitStep(kCommand, GlobalStep(0), false) == GlobalStep(1));
  REQUIRE_FALSE(token.IsParked());
  CHECK(token->step == GlobalStep(1));
  CHECK_FALSE(token->done);
  CHECK(*h.shard.CommitStep(kCommand, GlobalStep(0), false) == GlobalStep(1));
  CHECK(h.Dequeue(1, 1)->step == GlobalStep(1));
  CHECK(h.Dequeue(1, 1)->step == GlobalStep(1));
  const auto next = h.Dequeue(0, 2);
  CHECK(next.IsParked());
  CHECK(h.shard.Report().waiting_dequeues == 1);
  CHECK(absl::IsFailedPrecondition(h.shard.CommitStep(kCommand, GlobalStep(1), false).status()));
  CHECK(absl::IsInvalidArgument(h.Dequeue(1, 0).status()));
}

TEST_CASE("with one shard the grant carries the commit: tokens first, then the answer") {
  Harness h(OneVariable());
  std::vector<std::string> order;
  h.shard.DequeueToken({IdentityOf(0), DequeueSeq(1)}, [&](absl::StatusOr<Token> token) {
    order.push_back(token.ok() && token->step == GlobalStep(1) ? "token 1" : "?");
  });
  GrantOrder grant{.command = kCommand, .step = GlobalStep(0), .commit = true};
  h.shard.Grant(grant, [&](absl::StatusOr<ClosedStep> closed) {
    order.push_back(closed.ok() ? "closed" : "?");
  });
  h.Push(0, 1, 0, 0, {1});
  CHECK(order == std::vector<std::string>{"token 1", "closed"});
  CHECK(h.shard.GetView().global_step == GlobalStep(1));
  // The last step: tokens say that all is done.
  const auto token = h.Dequeue(0, 2);
  grant.step = GlobalStep(1);
  grant.last = true;
  const auto closed = h.Grant(grant);
  h.Push(0, 2, 1, 0, {1});
  CHECK(closed.status().ok());
  CHECK(token->done);
  CHECK(h.Dequeue(0, 3)->done);
}

TEST_CASE("a commit that comes with a repeated grant is made up for") {
  Harness h(OneVariable());
  h.Grant(0, 1);
  h.Push(0, 1, 0, 0, {1});
  CHECK(h.shard.GetView().global_step == GlobalStep(0));
  GrantOrder grant{.command = kCommand, .step = GlobalStep(0), .commit = true};
  CHECK(h.Grant(grant).status().ok());
  CHECK(h.shard.GetView().global_step == GlobalStep(1));
}

TEST_CASE("only the step shard commits, and a grant commits only where it has all variables") {
  Harness h;
  REQUIRE(h.shard.SetView(test::ViewOf(1, 1)).ok());
  REQUIRE(h.shard.CreateVariables(PlanOf(PlacementOf({{"w", {1}, 1}}, 2), 1, 1)).ok());
  h.Grant(0, 1);
  h.Push(0, 1, 0, 0, {1});
  CHECK(absl::IsFailedPrecondition(h.shard.CommitStep(kCommand, GlobalStep(0), false).status()));
  CHECK(absl::IsFailedPrecondition(h.Dequeue(0, 1).status()));
  CHECK(absl::IsInvalidArgument(
      h.Grant({.command = kCommand, .step = GlobalStep(1), .commit = true}).status()));
}

TEST_CASE("a shard without variables closes each step at once and keeps in step") {
  Harness h;
  REQUIRE(h.shard.SetView(test::ViewOf(1)).ok());
  REQUIRE(h.shard.CreateVariables(PlanOf(PlacementOf({{"w", {1}, 1}}, 2), 1, 1)).ok());
  const auto next = h.Grant(1, 1);
  CHECK(next.IsParked());
  CHECK(h.Grant(0, 1)->shard_step == GlobalStep(1));
  CHECK(next->shard_step == GlobalStep(2));
  CHECK(*h.shard.CommitStep(kCommand, GlobalStep(0), false) == GlobalStep(1));
}

TEST_CASE("statistics are averaged, assigned, told with the step, and dropped when stale") {
  Harness h(
      PlanOf(PlacementOf({{"w", {1}}, {"mean", {2}, 0, false}, {"wide", {17}, 0, false}}), 3, 2));
  const auto closed = h.Grant(0, 2, 1.0f);
  for (uint32_t worker = 0; worker < 3; ++worker) {
    const float value = static_cast<float>(worker);
    const Verdict expected = worker < 2 ? Verdict::kAccepted : Verdict::kStale;
    CHECK(h.Push(worker, 1, 0, 1, {value, 10 * value}) == expected);
    CHECK(h.Push(worker, 1, 0, 2, std::vector<float>(17, value)) == expected);
    CHECK(h.Push(worker, 1, 0, 0, {value}) == expected);
  }
  REQUIRE_FALSE(closed.IsParked());
  REQUIRE(closed->statistics.size() == 1);
  CHECK(closed->statistics[0].variable == VariableId(1));
  CHECK(closed->statistics[0].values == std::vector<float>{0.5f, 5});
  CHECK(closed->statistics[0].count == 2);
  CHECK(h.Read(1, 1) == std::vector<float>{0.5f, 5});
  CHECK(h.Read(1, 2) == std::vector<float>(17, 0.5f));
  // Told again to who asks again.
  CHECK(h.Grant(0, 2)->statistics.size() == 1);
}

TEST_CASE("Adam's powers advance once per step for all variables of a shard") {
  VariablePlan plan = PlanOf(PlacementOf({{"a", {1}, 0, true, 1}, {"b", {1}, 0, true, 1}}), 1, 1);
  plan.optimizer.mutable_adam();
  Harness h(plan);
  // TensorFlow's numbers for learning rate 0.5.
  const float gradients[] = {.1f, -.2f, .3f, 0.f, .05f};
  const float values[] = {.50000155f, .683052421f, .511433184f, .370852649f, .216910467f};
  for (int64_t step = 0; step < 5; ++step) {
    h.Grant(step, 1, .5f);
    for (const uint32_t variable : {1, 0}) h.Push(0, step + 1, step, variable, {gradients[step]});
    CHECK(h.Read(step + 1, 0)[0] == values[step]);
    CHECK(h.Read(step + 1, 1)[0] == values[step]);
  }
}

TEST_CASE("kept values stay readable under their number until they are released") {
  Harness h(OneVariable());
  for (int64_t step = 0; step < 4; ++step) {
    GrantOrder grant{.command = kCommand,
                     .step = GlobalStep(step),
                     .learning_rate = 1.0f,
                     .keep_values = step == 0};
    h.Grant(grant);
    h.Push(0, step + 1, step, 0, {1});
  }
  CHECK(h.Read(1, 0)[0] == -1);
  CHECK(h.Pull(0, 2, {{VariableId(0)}})->version == GlobalStep(4));
  REQUIRE(h.shard.ReleaseSnapshot(kCommand, GlobalStep(1)).ok());
  CHECK(h.shard.ReleaseSnapshot(kCommand, GlobalStep(1)).ok());
  CHECK(h.Pull(0, 1, {{VariableId(0)}})->version == GlobalStep(4));
}

TEST_CASE("a new chief's view ends the old chief's calls and grants") {
  Harness h(PlanOf(PlacementOf({{"a", {1}}, {"b", {1}}}), 1, 1));
  const auto current = h.Grant(0, 1, 1.0f);
  const auto next = h.Grant(1, 1, 1.0f);
  h.Push(0, 1, 0, 0, {1});
  View view = test::ViewOf(1);
  view.command.term = Term(2);
  REQUIRE(h.shard.SetView(view).ok());
  CHECK(absl::IsAborted(current.status()));
  CHECK(absl::IsAborted(next.status()));
  CHECK(absl::IsAborted(h.Grant(0, 1).status()));
  CHECK(absl::IsAborted(h.shard.CommitStep(kCommand, GlobalStep(0), false).status()));
  CHECK(absl::IsAborted(h.shard.Finish(kCommand)));
  CHECK(absl::IsAborted(h.shard.SetView(test::ViewOf(1)).status()));
  // What was applied stays; the rest waits for the new chief's grant.
  CHECK(h.Push(0, 1, 0, 1, {1}) == Verdict::kAccepted);
  CHECK(h.shard.GetView().shard_step == GlobalStep(0));
  const auto renewed =
      h.Grant({.command = {kJob, Term(2)}, .step = GlobalStep(0), .learning_rate = 1.0f});
  REQUIRE_FALSE(renewed.IsParked());
  CHECK(h.Read(1, 0)[0] == -1);
  CHECK(h.Read(1, 1)[0] == -1);
}

TEST_CASE("another epoch is another state: parked calls end, variables are made anew") {
  Harness h(OneVariable());
  const auto grant = h.Grant(0, 1);
  const auto pull = h.Pull(0, 1, {{VariableId(0)}});
  const auto token = h.Dequeue(0, 1);
  View view = test::ViewOf(1);
  view.epoch = Epoch(2);
  const auto state = h.shard.SetView(view);
  REQUIRE(state.ok());
  CHECK_FALSE(state->has_variables);
  for (const absl::Status& status : {grant.status(), pull.status(), token.status()}) {
    CHECK(absl::IsAborted(status));
  }
  const absl::Status old =
      h.shard.Push(Message(IdentityOf(0), 1, 0).Whole(0, Shape({1}), {1}).Ready()).status();
  CHECK(absl::IsAborted(old));
  CHECK(absl::StrContains(old.message(), "the shard in epoch 2"));
  VariablePlan plan = OneVariable();
  plan.start_step = GlobalStep(5);
  REQUIRE(h.shard.CreateVariables(plan).ok());
  CHECK(h.shard.GetView().shard_step == GlobalStep(5));
}

TEST_CASE("parked calls of a worker that leaves the view are answered") {
  Harness h(OneVariable(2, 2));
  const auto pull = h.Pull(0, 1, {{VariableId(0)}});
  const auto token = h.Dequeue(0, 1);
  const auto other = h.Dequeue(1, 1);
  View view = test::ViewOf(2);
  view.members[0].incarnation = Incarnation(5);
  REQUIRE(h.shard.SetView(view).ok());
  CHECK(absl::IsAborted(pull.status()));
  CHECK(absl::IsAborted(token.status()));
  CHECK(other.IsParked());
}

TEST_CASE("finishing answers tokens with done, other parked calls with an end") {
  Harness h(OneVariable(1, 2, FIFO));
  REQUIRE(h.Dequeue(0, 1)->step == GlobalStep(0));
  const auto grant = h.Grant(0, 2);
  const auto pull = h.Pull(0, 1, {{VariableId(0)}});
  REQUIRE(h.shard.Finish(kCommand).ok());
  CHECK(absl::IsCancelled(grant.status()));
  CHECK(absl::IsCancelled(pull.status()));
  CHECK(h.Dequeue(0, 2)->done);
  CHECK(absl::IsFailedPrecondition(h.Grant(0, 1).status()));
  CHECK(absl::IsCancelled(h.Pull(0, 1, {{VariableId(0)}}).status()));
  CHECK(h.Pull(0, 0, {{VariableId(0)}}).status().ok());
  CHECK(h.shard.Finish(kCommand).ok());
}

TEST_CASE("stopping cancels what is parked and refuses what comes") {
  Harness h(OneVariable());
  const auto grant = h.Grant(0, 1);
  const auto pull = h.Pull(0, 1, {{VariableId(0)}});
  const auto token = h.Dequeue(0, 1);
  h.shard.Stop();
  for (const absl::Status& status : {grant.status(), pull.status(), token.status()}) {
    CHECK(absl::IsCancelled(status));
  }
  CHECK(absl::IsUnavailable(h.Grant(0, 1).status()));
  CHECK(absl::IsUnavailable(h.Pull(0, 0, {{VariableId(0)}}).status()));
  CHECK(absl::IsUnavailable(h.Dequeue(0, 1).status()));
  CHECK(absl::IsUnavailable(
      h.shard.Push(Message(IdentityOf(0), 1, 0).Whole(0, Shape({1}), {1}).Ready()).status()));
  h.shard.Stop();
  CHECK(grant.calls() == 1);
}

TEST_CASE("FIFO drains old tokens after the last commit and then says done") {
  Harness h(OneVariable(1, 1, FIFO));
  GrantOrder grant{.command = kCommand, .step = GlobalStep(0), .commit = true, .last = true};
  h.Grant(grant);
  h.Push(0, 1, 0, 0, {1});
  const auto leftover = h.Dequeue(0, 1);
  CHECK_FALSE(leftover->done);
  CHECK(leftover->step == GlobalStep(0));
  CHECK(h.Dequeue(0, 2)->done);
}

TEST_CASE("the report says which variables a step waits for and who is in") {
  Harness h(PlanOf(PlacementOf({{"a", {2}}, {"b", {3}}}), 3, 2));
  h.Grant(0, 2);
  h.Push(2, 1, 0, 1, {1, 2, 3});
  ShardReport report = h.shard.Report();
  CHECK(report.variables == 2);
  CHECK(report.bytes == 20);
  CHECK(report.held_bytes == 12);
  REQUIRE(report.pending.size() == 2);
  CHECK(report.pending[1].name == "b");
  CHECK(report.pending[1].have == 1);
  CHECK(report.pending[1].required == 2);
  CHECK(report.pending[1].from == std::vector<WorkerIndex>{WorkerIndex(2)});
  h.Push(0, 1, 0, 1, {1, 2, 3});
  report = h.shard.Report();
  REQUIRE(report.pending.size() == 1);
  CHECK(report.pending[0].name == "a");
}

}  // namespace
}  // namespace lockstep::ps
