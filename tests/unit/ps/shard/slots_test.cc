// TensorFlow's get_slot and get_slot_names: the slots of an optimizer, read of versions that are
// kept.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::kCommand;
using test::Message;
using test::PlacementOf;
using test::PlanOf;

// A dense variable, a table of two rows, a statistic; momentum 0.5.
CreateVariablesRequest WithMomentum() {
  CreateVariablesRequest plan = PlanOf(
      PlacementOf(
          {{"w", {2}, 0, true, 4}, {"table", {2, 1}, 0, true, 4, true}, {"mean", {1}, 0, false}}),
      1, 1);
  plan.mutable_optimizer()->mutable_momentum()->set_momentum(0.5f);
  plan.mutable_optimizer()->mutable_variable_averages()->set_decay(0.5f);
  return plan;
}

void Step(Harness* harness, int64_t step, bool keep_slots) {
  const auto closed = harness->Grant({.command = kCommand,
                                      .step = GlobalStep(step),
                                      .learning_rate = 1,
                                      .keep_values = true,
                                      .keep_slots = keep_slots});
  const uint64_t push_seq = static_cast<uint64_t>(step) + 1;
  harness->Push(0, push_seq, step, 0, {1, 2});
  const auto rows = harness->shard.Push(
      Message(test::IdentityOf(0), push_seq, step).Rows(1, Shape({2, 1}), {1}, {3}).Ready());
  REQUIRE(rows.ok());
  harness->Push(0, push_seq, step, 2, {7});
  REQUIRE_FALSE(closed.IsParked());
}

test::Reply<PullResult> PullSlot(Harness* harness, int64_t version, const std::string& slot,
                                 std::vector<PullPiece> pieces) {
  test::Reply<PullResult> reply;
  harness->shard.Pull({.worker = test::IdentityOf(0),
                       .version = GlobalStep(version),
                       .pieces = std::move(pieces),
                       .slot = slot},
                      reply.done());
  return reply;
}

TEST_CASE("creating variables tells which slots the optimizer keeps") {
  Harness harness;
  REQUIRE(harness.shard.SetView(test::ViewOf(1)).ok());
  const auto created = harness.shard.CreateVariables(WithMomentum());
  REQUIRE(created.ok());
  REQUIRE(created->reply.slots_size() == 1);
  CHECK(created->reply.slots(0) == "momentum");
  const auto again = harness.shard.CreateVariables(WithMomentum());
  REQUIRE(again->reply.slots_size() == 1);
  CHECK(again->reply.slots(0) == "momentum");
}

TEST_CASE("a slot is read of a version that is kept with slots, whole or by rows") {
  Harness harness(WithMomentum());
  Step(&harness, 0, true);
  Step(&harness, 1, true);
  const auto whole = PullSlot(&harness, 2, "momentum", {{VariableId(0)}, {VariableId(1)}});
  REQUIRE_FALSE(whole.IsParked());
  REQUIRE(whole.status().ok());
  CHECK(test::ValuesOf(whole->pieces[0]) == std::vector<float>{1.5f, 3});
  CHECK(test::ValuesOf(whole->pieces[1]) == std::vector<float>{0, 4.5f});
  const auto rows = PullSlot(&harness, 1, "momentum", {{.variable = VariableId(1), .rows = {1}}});
  REQUIRE(rows.status().ok());
  CHECK(test::ValuesOf(rows->pieces[0]) == std::vector<float>{3});
  const auto average = PullSlot(&harness, 1, "ExponentialMovingAverage", {{VariableId(0)}});
  REQUIRE(average.status().ok());
  CHECK(test::ValuesOf(average->pieces[0]) == std::vector<float>{3.5f, 3});
}

TEST_CASE("a slot that is not there is refused by name, and so is a version without slots") {
  Harness harness(WithMomentum());
  Step(&harness, 0, true);
  Step(&harness, 1, false);
  const auto unknown = PullSlot(&harness, 1, "m", {{VariableId(0)}});
  CHECK(absl::IsInvalidArgument(unknown.status()));
  CHECK(absl::StrContains(unknown.status().message(), "\"w\" (0): it has no slot \"m\""));
  CHECK(absl::IsInvalidArgument(
      PullSlot(&harness, 1, "momentum", {{VariableId(0)}, {VariableId(2)}}).status()));
  CHECK(absl::IsFailedPrecondition(PullSlot(&harness, 2, "momentum", {{VariableId(0)}}).status()));
  CHECK(absl::IsFailedPrecondition(PullSlot(&harness, 3, "momentum", {{VariableId(0)}}).status()));
}

TEST_CASE("one pull has no more averages or slots copied than a message takes") {
  CreateVariablesRequest plan = WithMomentum();
  *plan.mutable_placement() = PlacementOf({{"w", {1 << 20}, 0, true, 4}});  // 4 MiB
  Harness harness(plan);
  for (const std::string slot : {"", "momentum"}) {
    CAPTURE(slot);
    PullArguments arguments{.worker = test::IdentityOf(0), .version = GlobalStep(1), .slot = slot};
    arguments.averages = slot.empty();
    arguments.pieces.assign(4, {VariableId(0)});
    test::Reply<PullResult> fits;
    harness.shard.Pull(arguments, fits.done());
    CHECK(absl::IsFailedPrecondition(fits.status()));  // the version is not kept
    arguments.pieces.push_back({.variable = VariableId(0), .offset = 0, .size = 1});
    test::Reply<PullResult> beyond;
    harness.shard.Pull(arguments, beyond.done());
    CHECK(absl::IsInvalidArgument(beyond.status()));
    CHECK(absl::StrContains(beyond.status().message(), "of at most 16777216 bytes of rows, "));
  }
}

}  // namespace
}  // namespace lockstep::ps
