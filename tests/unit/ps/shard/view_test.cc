// What another view, the end of the job and a stop do to the calls that are parked.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::IdentityOf;
using test::kCommand;
using test::kJob;
using test::Message;
using test::OneVariable;
using test::PlacementOf;
using test::PlanOf;

TEST_CASE("a new chief's view ends the old chief's calls and grants") {
  Harness h(PlanOf(PlacementOf({{"a", {1}}, {"b", {1}}}), 1, 1));
  const auto current = h.Grant(0, 1, 1.0f);
  const auto next = h.Grant(1, 1, 1.0f);
  h.Push(0, 1, 0, 0, {1});
  View view = test::ViewOf(1);
  view.command.set_term(2);
  REQUIRE(h.shard.SetView(view).ok());
  CHECK(absl::IsAborted(current.status()));
  CHECK(absl::IsAborted(next.status()));
  CHECK(absl::IsAborted(h.Grant(0, 1).status()));
  CHECK(absl::IsAborted(h.shard.CommitStep(kCommand, GlobalStep(0), false).status()));
  CHECK(absl::IsAborted(h.shard.Finish(kCommand)));
  CHECK(absl::IsAborted(h.shard.SetView(test::ViewOf(1)).status()));
  // What was applied stays; the rest waits for the new chief's grant.
  CHECK(h.Push(0, 1, 0, 1, {1}) == PushStatus::kAccepted);
  CHECK(h.shard.GetView().shard_step == GlobalStep(0));
  const auto renewed = h.Grant(
      {.command = test::CommandOf(test::kJob, 2), .step = GlobalStep(0), .learning_rate = 1.0f});
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
  CreateVariablesRequest plan = OneVariable();
  plan.set_start_step(5);
  REQUIRE(h.shard.CreateVariables(plan).ok());
  CHECK(h.shard.GetView().shard_step == GlobalStep(5));
}

TEST_CASE("a token tells its replica's share of its step, by the step's view") {
  CreateVariablesRequest plan = OneVariable(2, 2);
  plan.mutable_sync()->set_min_replicas(1);
  Harness h(plan);
  View view = test::ViewOf(3);
  const auto add = [&view](uint64_t number, int64_t first, std::vector<WorkerIndex> workers) {
    const auto total = static_cast<uint32_t>(workers.size());
    REQUIRE(view.replica_views
                .Add({.number = number,
                      .first = GlobalStep(first),
                      .workers = std::move(workers),
                      .aggregate = total})
                .ok());
  };
  add(1, 0, {WorkerIndex(0), WorkerIndex(1)});
  REQUIRE(h.shard.SetView(view).ok());
  CHECK(h.shard.GetView().replica_views == view.replica_views);
  const auto first = h.Dequeue(0, 1);
  const auto other = h.Dequeue(2, 1);
  REQUIRE(first.IsParked());
  add(2, 1, {WorkerIndex(0), WorkerIndex(2)});
  REQUIRE(h.shard.SetView(view).ok());
  const auto grant = h.Grant(0, 2, 1.0f);
  h.Push(0, 1, 0, 0, {1});
  h.Push(1, 1, 0, 0, {3});
  REQUIRE_FALSE(grant.IsParked());
  REQUIRE(h.shard.CommitStep(kCommand, GlobalStep(0), false).ok());
  REQUIRE_FALSE(first.IsParked());
  CHECK(first->share == ReplicaShare{2, 2, 0});
  CHECK(other->share == ReplicaShare{2, 2, 1});
  const auto left_out = h.Dequeue(1, 1);
  REQUIRE_FALSE(left_out.IsParked());
  CHECK(left_out->share == ReplicaShare{2, 2, 2});
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

TEST_CASE("the end of the job reaches a shard that its chief has left behind in an older term") {
  Harness h(OneVariable(1, 2, FIFO));
  REQUIRE(h.Dequeue(0, 1)->step == GlobalStep(0));
  const Command newer = test::CommandOf(kJob, 2);
  CHECK(absl::IsFailedPrecondition(h.shard.CommitStep(newer, GlobalStep(0), false).status()));
  CHECK(absl::IsFailedPrecondition(h.shard.Finish(test::CommandOf(kJob + 1, 2))));
  REQUIRE(h.shard.Finish(newer).ok());
  CHECK(h.Dequeue(0, 2)->done);
}

TEST_CASE("stopping answers what is parked, and what comes, as a process that has died would") {
  Harness h(OneVariable());
  const auto grant = h.Grant(0, 1);
  const auto pull = h.Pull(0, 1, {{VariableId(0)}});
  const auto token = h.Dequeue(0, 1);
  h.shard.Stop();
  for (const absl::Status& status : {grant.status(), pull.status(), token.status()}) {
    CHECK(absl::IsUnavailable(status));
  }
  CHECK(absl::IsUnavailable(h.Grant(0, 1).status()));
  CHECK(absl::IsUnavailable(h.Pull(0, 0, {{VariableId(0)}}).status()));
  CHECK(absl::IsUnavailable(h.Dequeue(0, 1).status()));
  CHECK(absl::IsUnavailable(
      h.shard.Push(Message(IdentityOf(0), 1, 0).Whole(0, Shape({1}), {1}).Ready()).status()));
  h.shard.Stop();
  CHECK(grant.calls() == 1);
}

}  // namespace
}  // namespace lockstep::ps
