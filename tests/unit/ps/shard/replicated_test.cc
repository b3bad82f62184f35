// Variables that the workers keep (strategy replicated): steps close with the loss alone, and
// versions that are kept come from a worker.
#include <catch2/catch.hpp>

#include "common/checkpoint/checkpoint.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/ps/shard/committed.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using Catch::Matchers::Contains;
using lockstep::test::PayloadOf;
using test::Harness;
using test::IdentityOf;
using test::kCommand;
using test::Message;
using test::PlacementOf;
using test::PlanOf;
using test::Reply;

constexpr uint32_t kW = 0, kLoss = 1;

// "w" has two elements and begins at 4; "loss" is pushed.
CreateVariablesRequest Replicated(uint32_t replicas = 1) {
  CreateVariablesRequest plan = PlanOf(
      PlacementOf({{"w", {2}, 0, true, 4}, {.name = "loss", .dims = {1}, .trainable = false}}),
      replicas, replicas);
  plan.mutable_placement()->mutable_variables(kW)->set_replicated(true);
  plan.mutable_optimizer()->mutable_adam();
  return plan;
}

GrantArguments Keeping(int64_t step, bool values, bool slots) {
  return {.command = kCommand,
          .step = GlobalStep(step),
          .learning_rate = 1,
          .keep_values = values,
          .keep_slots = slots,
          .commit = true};
}

absl::StatusOr<bool> Store(Harness* harness, int64_t version, std::vector<StoredPiece> pieces,
                           const std::vector<float>& values, uint32_t worker = 0) {
  StoreArguments arguments{IdentityOf(worker), GlobalStep(version), std::move(pieces), {}};
  arguments.tensors = ReceivedTensors(PayloadOf(std::as_bytes(std::span(values)), 3));
  return harness->shard.Store(arguments);
}

StoredPiece All(uint32_t variable, const std::string& slot = "") {
  return {VariableId(variable), slot, 0, 8};
}

// The loss of a step: the worker has its sum.
void PushLoss(Harness* harness, int64_t step) {
  REQUIRE(harness->Push(0, static_cast<uint64_t>(step) + 1, step, kLoss, {1}) ==
          PushStatus::kAccepted);
}

TEST_CASE("a step closes with the loss alone, and nobody may push what the workers keep") {
  Harness harness(Replicated());
  const auto closed = harness.Grant(Keeping(0, false, false));
  const auto refused =
      harness.shard.Push(Message(IdentityOf(0), 1, 0).Whole(kW, Shape({2}), {1, 1}).Ready());
  CHECK_THAT(std::string(refused.status().message()),
             Contains("\"w\" (0): the workers keep it (strategy replicated)"));
  CHECK(closed.IsParked());
  PushLoss(&harness, 0);
  REQUIRE_FALSE(closed.IsParked());
  const auto token = harness.Dequeue(0, 1);
  CHECK(token->step == GlobalStep(1));
  CHECK_FALSE(token->store_values);
}

TEST_CASE("what a lost worker has pushed counts no more, and its successor pushes again") {
  Harness harness(Replicated(2));
  GrantArguments grant = Keeping(0, false, false);
  grant.required = 2;
  const auto closed = harness.Grant(grant);
  REQUIRE(harness.Push(1, 1, 0, kLoss, {1}) == PushStatus::kAccepted);

  View view = test::ViewOf(2);
  view.members.pop_back();
  CHECK(harness.shard.SetView(view)->shard_step == GlobalStep(0));
  REQUIRE(harness.Push(0, 1, 0, kLoss, {3}) == PushStatus::kAccepted);
  CHECK(closed.IsParked());

  WorkerIdentity successor = IdentityOf(1);
  successor.incarnation = Incarnation(77);
  view.members.push_back({successor.worker, successor.incarnation});
  CHECK(harness.shard.SetView(view)->shard_step == GlobalStep(0));
  CHECK(closed.IsParked());
  REQUIRE(harness.shard.Push(Message(successor, 1, 0).Whole(kLoss, Shape({1}), {5}).Ready()).ok());
  REQUIRE_FALSE(closed.IsParked());
  CHECK(harness.shard.SetView(view)->shard_step == GlobalStep(1));
}

TEST_CASE("what a worker has pushed counts again when it comes back as it was") {
  Harness harness(Replicated(2));
  GrantArguments grant = Keeping(0, false, false);
  grant.required = 2;
  const auto closed = harness.Grant(grant);
  REQUIRE(harness.Push(0, 1, 0, kLoss, {1}) == PushStatus::kAccepted);

  View without = test::ViewOf(2);
  without.members.erase(without.members.begin());
  REQUIRE(harness.shard.SetView(without).ok());
  REQUIRE(harness.Push(1, 1, 0, kLoss, {3}) == PushStatus::kAccepted);
  REQUIRE(harness.shard.SetView(test::ViewOf(2)).ok());
  CHECK(closed.IsParked());
  CHECK(harness.Push(0, 1, 0, kLoss, {1}) == PushStatus::kAccepted);
  CHECK_FALSE(closed.IsParked());
}

TEST_CASE("with SHRINK a step needs those who are there, and closes when somebody leaves") {
  CreateVariablesRequest plan = Replicated(3);
  plan.mutable_sync()->set_quorum_policy(SHRINK);
  plan.mutable_sync()->set_token_policy(PER_REPLICA);
  plan.mutable_sync()->set_replicas_to_aggregate(3);
  Harness harness(plan);
  GrantArguments grant = Keeping(0, false, false);
  grant.required = 3;
  const auto closed = harness.Grant(grant);
  REQUIRE(harness.Push(0, 1, 0, kLoss, {1}) == PushStatus::kAccepted);
  REQUIRE(harness.Push(2, 1, 0, kLoss, {3}) == PushStatus::kAccepted);

  View view = test::ViewOf(3);
  SECTION("all that are left have the sum") {
    view.members.erase(view.members.begin() + 1);
    CHECK(harness.shard.SetView(view)->shard_step == GlobalStep(1));
    CHECK_FALSE(closed.IsParked());
  }
  SECTION("one of them has none yet") {
    view.members.pop_back();
    CHECK(harness.shard.SetView(view)->shard_step == GlobalStep(0));
    CHECK(closed.IsParked());
    REQUIRE(harness.Push(1, 1, 0, kLoss, {5}) == PushStatus::kAccepted);
    CHECK_FALSE(closed.IsParked());
  }
}

TEST_CASE("with SHRINK a step stays open until those who are left have stored its version") {
  CreateVariablesRequest plan = Replicated(2);
  plan.mutable_sync()->set_quorum_policy(SHRINK);
  plan.mutable_sync()->set_token_policy(PER_REPLICA);
  Harness harness(plan);
  harness.Grant(Keeping(0, true, false));
  REQUIRE(harness.Push(0, 1, 0, kLoss, {1}) == PushStatus::kAccepted);
  const auto closed = harness.Grant(Keeping(1, false, false));
  REQUIRE(harness.Push(1, 2, 1, kLoss, {1}) == PushStatus::kAccepted);

  View view = test::ViewOf(2);
  view.members.erase(view.members.begin());
  CHECK(harness.shard.SetView(view)->shard_step == GlobalStep(1));
  CHECK(closed.IsParked());
  CHECK(*Store(&harness, 1, {All(kW)}, {7, 8}, 1));
  CHECK_FALSE(closed.IsParked());
  CHECK(harness.shard.SetView(view)->shard_step == GlobalStep(2));
}

TEST_CASE("the starting version has its values and slots here, with the rule's numbers") {
  Harness harness(Replicated());
  CHECK(harness.Read(0, kW) == std::vector<float>{4, 4});
  Reply<PullResult> slots;
  harness.shard.Pull({IdentityOf(0), GlobalStep(0), {{VariableId(kW)}}, false, "v"}, slots.done());
  REQUIRE_FALSE(slots.IsParked());
  CHECK(test::ValuesOf(slots->pieces[0]) == std::vector<float>{0, 0});
  CHECK(slots->scalars == std::vector<float>{0.9f, 0.999f});
}

TEST_CASE("a token tells what is to be stored, and reading waits until all of it is there") {
  Harness harness(Replicated());
  harness.Grant(Keeping(0, true, false));
  const auto pulled = harness.Pull(0, 1, {{VariableId(kW)}});
  PushLoss(&harness, 0);
  const auto token = harness.Dequeue(0, 1);
  CHECK(token->store_values);
  CHECK_FALSE(token->store_slots);
  CHECK(pulled.IsParked());
  // In pieces that overlap, and again.
  CHECK(Store(&harness, 1, {{VariableId(kW), "", 2, 6}}, {0, 8}).status().code() ==
        absl::StatusCode::kInvalidArgument);
  const ShardActivity before = harness.shard.Activity();
  CHECK_FALSE(*Store(&harness, 1, {{VariableId(kW), "", 0, 4}}, {7}));
  CHECK(harness.shard.Activity() != before);
  CHECK_FALSE(*Store(&harness, 1, {{VariableId(kW), "", 0, 4}}, {7}));
  CHECK(pulled.IsParked());
  CHECK(*Store(&harness, 1, {All(kW)}, {7, 8}));
  REQUIRE_FALSE(pulled.IsParked());
  CHECK(test::ValuesOf(pulled->pieces[0]) == std::vector<float>{7, 8});
  // By another worker, when all is there: nothing changes.
  CHECK(*Store(&harness, 1, {All(kW)}, {1, 1}));
  CHECK(harness.Read(1, kW) == std::vector<float>{7, 8});
}

TEST_CASE("the step that a version begins closes only when the version has been stored") {
  Harness harness(Replicated());
  harness.Grant(Keeping(0, true, false));
  PushLoss(&harness, 0);
  CHECK(harness.Dequeue(0, 1)->step == GlobalStep(1));
  const auto next = harness.Grant(Keeping(1, false, false));
  PushLoss(&harness, 1);
  CHECK(next.IsParked());
  const auto token = harness.Dequeue(0, 2);
  CHECK(token.IsParked());
  CHECK(*Store(&harness, 1, {All(kW)}, {7, 8}));
  REQUIRE_FALSE(next.IsParked());
  REQUIRE_FALSE(token.IsParked());
  CHECK(token->step == GlobalStep(2));
}

TEST_CASE("a checkpoint waits for values and slots, and has them and the rule's own numbers") {
  const lockstep::test::TemporaryFolder root;
  Harness harness(Replicated());
  harness.Grant(Keeping(0, false, true));
  PushLoss(&harness, 0);
  CHECK(harness.Dequeue(0, 1)->store_slots);
  Reply<bool> stored;
  harness.shard.AwaitStored(kCommand, GlobalStep(1), stored.done());
  CHECK(*Store(&harness, 1, {All(kW), All(kW, "m")}, {7, 8, 9, 10}) == false);
  CHECK(stored.IsParked());
  const std::string folder = CheckpointFolder(root.path(), 1);
  CHECK(absl::IsUnavailable(harness.shard.Save(kCommand, GlobalStep(1), folder).status()));
  CHECK(*Store(&harness, 1, {All(kW, "v")}, {11, 12}));
  REQUIRE_FALSE(stored.IsParked());
  const auto saved = harness.shard.Save(kCommand, GlobalStep(1), folder);
  REQUIRE(saved.ok());
  test::Committed(root.path(), 1, "adam", {*saved});

  CreateVariablesRequest plan = Replicated();
  plan.mutable_placement()->mutable_variables(kW)->set_replicated(false);
  plan.set_restore_from(folder);
  plan.set_start_step(1);
  Harness restored(plan);
  CHECK(restored.Read(1, kW) == std::vector<float>{7, 8});
}

TEST_CASE("a version that no grant kept cannot be saved") {
  const lockstep::test::TemporaryFolder root;
  Harness harness(Replicated());
  const auto saved = harness.shard.Save(kCommand, GlobalStep(0), CheckpointFolder(root.path(), 0));
  CHECK(absl::IsFailedPrecondition(saved.status()));
  CHECK_THAT(std::string(saved.status().message()), Contains("the workers have its values"));
}

TEST_CASE("`done` counts as the token of the last step") {
  Harness harness(Replicated());
  GrantArguments last = Keeping(0, true, true);
  last.last = true;
  harness.Grant(last);
  PushLoss(&harness, 0);
  const auto token = harness.Dequeue(0, 1);
  CHECK(token->done);
  CHECK(token->step == GlobalStep(1));
  CHECK(token->store_slots);
  CHECK(*Store(&harness, 1, {All(kW), All(kW, "m"), All(kW, "v")}, {1, 2, 3, 4, 5, 6}));
  CHECK(harness.Read(1, kW) == std::vector<float>{1, 2});
}

TEST_CASE("what is stored wrongly is refused by name, and changes nothing") {
  Harness harness(Replicated());
  harness.Grant(Keeping(0, true, true));
  PushLoss(&harness, 0);
  const auto error = [&](std::vector<StoredPiece> pieces, const std::vector<float>& values) {
    const auto stored = Store(&harness, 1, std::move(pieces), values);
    CHECK(absl::IsInvalidArgument(stored.status()));
    return std::string(stored.status().message());
  };
  CHECK_THAT(error({All(kLoss)}, {1, 2}), Contains("\"loss\" (1): it is not replicated"));
  CHECK_THAT(error({All(7)}, {1, 2}), Contains("7"));
  CHECK_THAT(error({All(kW, "momentum")}, {1, 2}), Contains("no slot \"momentum\""));
  CHECK_THAT(error({{VariableId(kW), "", 4, 8}}, {1, 2}),
             Contains("expected bytes in [0, 8), got 8 bytes from offset 4"));
  CHECK_THAT(error({{VariableId(kW), "", UINT64_MAX, 2}}, {1, 2}), Contains("expected bytes in"));
  CHECK_THAT(error({All(kW)}, {1, 2, 3}), Contains("expected 8 bytes for its pieces, got 12"));
  CHECK_FALSE(*Store(&harness, 1, {}, {}));
  // A worker that is no member.
  CHECK_FALSE(Store(&harness, 1, {All(kW)}, {1, 2}, 5).ok());
}

TEST_CASE("a version that is kept no longer is passed over") {
  Harness harness(Replicated());
  harness.Grant(Keeping(0, true, false));
  PushLoss(&harness, 0);
  Reply<bool> stored;
  harness.shard.AwaitStored(kCommand, GlobalStep(1), stored.done());
  REQUIRE(harness.shard.ReleaseSnapshot(kCommand, GlobalStep(1)).ok());
  CHECK_FALSE(stored.IsParked());
  CHECK(*Store(&harness, 1, {All(kW)}, {1, 2}));
  CHECK(*Store(&harness, 9, {All(kW)}, {1, 2}));
}

TEST_CASE("the step that waits for a version closes when that is released instead") {
  Harness harness(Replicated());
  harness.Grant(Keeping(0, true, false));
  PushLoss(&harness, 0);
  const auto next = harness.Grant(Keeping(1, false, false));
  PushLoss(&harness, 1);
  CHECK(next.IsParked());
  REQUIRE(harness.shard.ReleaseSnapshot(kCommand, GlobalStep(1)).ok());
  CHECK_FALSE(next.IsParked());
}

}  // namespace
}  // namespace lockstep::ps
