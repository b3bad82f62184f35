// Grants, commits and tokens, as the chief and the workers see them.
#include <catch2/catch.hpp>

#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::IdentityOf;
using test::kCommand;
using test::kJob;
using test::OneVariable;
using test::PlacementOf;
using test::PlanOf;

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
  CreateVariablesRequest plan = OneVariable();
  plan.set_start_step(40);
  CHECK(h.shard.CreateVariables(plan)->reply.bytes() == 4);
  CHECK(h.shard.CreateVariables(plan)->reply.bytes() == 4);
  CHECK(h.shard.GetView().shard_step == GlobalStep(40));
  CHECK(h.shard.GetView().global_step == GlobalStep(40));
  plan.set_seed(1);
  CHECK(absl::IsFailedPrecondition(h.shard.CreateVariables(plan).status()));
}

TEST_CASE("a plan that cannot work is refused and another may follow") {
  Harness h;
  REQUIRE(h.shard.SetView(test::ViewOf(2)).ok());
  CHECK(absl::IsInvalidArgument(h.shard.CreateVariables(OneVariable(2, 0)).status()));
  CHECK(absl::IsInvalidArgument(h.shard.CreateVariables(OneVariable(2, 3)).status()));
  CreateVariablesRequest plan = OneVariable(1, 2, FIFO);
  plan.set_init_tokens(0);
  CHECK(absl::IsInvalidArgument(h.shard.CreateVariables(plan).status()));
  plan = OneVariable();
  plan.mutable_optimizer()->Clear();
  CHECK(absl::IsInvalidArgument(h.shard.CreateVariables(plan).status()));
  plan = OneVariable();
  plan.set_restore_from("/nowhere/ckpt-1");
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
  CHECK(absl::IsUnavailable(first.status()));
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
    CHECK(h.Push(worker, 1, 0, 0, {3.0f * worker}) == PushStatus::kAccepted);
  }
  const auto closed = h.Grant(0, 2, 1.0f);
  REQUIRE_FALSE(closed.IsParked());
  CHECK(h.Read(1, 0)[0] == -3);
  CHECK(closed->accepted == 3);
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
  CHECK(h.shard.Report().open_variables == 1);
  CHECK(absl::IsFailedPrecondition(h.shard.CommitStep(kCommand, GlobalStep(1), false).status()));
  CHECK(absl::IsInvalidArgument(h.Dequeue(1, 0).status()));
}

TEST_CASE("with one shard the grant carries the commit: tokens first, then the answer") {
  Harness h(OneVariable());
  std::vector<std::string> arguments;
  h.shard.DequeueToken({IdentityOf(0), DequeueSeq(1)}, [&](absl::StatusOr<Token> token) {
    arguments.push_back(token.ok() && token->step == GlobalStep(1) ? "token 1" : "?");
  });
  GrantArguments grant{.command = kCommand, .step = GlobalStep(0), .commit = true};
  h.shard.Grant(grant, [&](absl::StatusOr<ClosedStep> closed) {
    arguments.push_back(closed.ok() ? "closed" : "?");
  });
  h.Push(0, 1, 0, 0, {1});
  CHECK(arguments == std::vector<std::string>{"token 1", "closed"});
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
  GrantArguments grant{.command = kCommand, .step = GlobalStep(0), .commit = true};
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
    const PushStatus expected = worker < 2 ? PushStatus::kAccepted : PushStatus::kStale;
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

TEST_CASE("statistics of all steps whose grants were parked are told again, and of no other") {
  Harness h(PlanOf(PlacementOf({{"w", {1}}, {"loss", {1}, 0, false}}), 1, 1));
  const auto close = [&h](int64_t step) {
    CHECK(h.Push(0, step + 1, step, 1, {static_cast<float>(step)}) == PushStatus::kAccepted);
    CHECK(h.Push(0, step + 1, step, 0, {1}) == PushStatus::kAccepted);
  };
  // The connection of the chief is lost: no answer reaches it.
  (void)h.Grant(0, 1);
  (void)h.Grant(1, 1);
  close(0);
  REQUIRE(h.shard.CommitStep(kCommand, GlobalStep(0), false).ok());
  close(1);
  for (int64_t step = 0; step < 2; ++step) {
    const auto again = h.Grant(step, 1);
    REQUIRE_FALSE(again.IsParked());
    REQUIRE(again->statistics.size() == 1);
    CHECK(again->statistics[0].values == std::vector<float>{static_cast<float>(step)});
  }
  for (int64_t step = 2; step <= limits::kMaxParkedGrants; ++step) {
    REQUIRE(h.shard.CommitStep(kCommand, GlobalStep(step - 1), false).ok());
    (void)h.Grant(step, 1);
    close(step);
  }
  CHECK(h.Grant(0, 1)->statistics.empty());
  CHECK(h.Grant(1, 1)->statistics.size() == 1);
}

TEST_CASE("Adam's powers advance once per step for all variables of a shard") {
  CreateVariablesRequest plan =
      PlanOf(PlacementOf({{"a", {1}, 0, true, 1}, {"b", {1}, 0, true, 1}}), 1, 1);
  plan.mutable_optimizer()->mutable_adam();
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

TEST_CASE("FIFO drains old tokens after the last commit and then says done") {
  Harness h(OneVariable(1, 1, FIFO));
  GrantArguments grant{.command = kCommand, .step = GlobalStep(0), .commit = true, .last = true};
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
