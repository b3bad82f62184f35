// Variables without a gradient (TensorFlow's None): steps close without them and leave them as they
// are.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "common/checkpoint/checkpoint.h"
#include "tests/support/temporary_folder.h"
#include "tests/unit/ps/shard/committed.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::IdentityOf;
using test::kCommand;
using test::Message;
using test::PlacementOf;
using test::PlanOf;

// "w" is trained, "fixed" is not; both begin at 4.
CreateVariablesRequest HalfFrozen() {
  return PlanOf(PlacementOf({{"w", {1}, 0, true, 4},
                             {.name = "fixed", .dims = {1}, .initial = 4, .frozen = true}}),
                1, 1);
}

TEST_CASE("a step closes without the frozen variable, which then has the new version too") {
  Harness harness(HalfFrozen());
  for (int64_t step = 0; step < 3; ++step) {
    const auto closed = harness.Grant(step, 1);
    const auto pull = harness.Pull(0, step + 1, {{VariableId(1)}, {VariableId(0)}});
    CHECK(pull.IsParked());
    CHECK(harness.Push(0, static_cast<uint64_t>(step) + 1, step, 0, {1}) == PushStatus::kAccepted);
    REQUIRE_FALSE(closed.IsParked());
    CHECK(closed->shard_step == GlobalStep(step + 1));
    REQUIRE_FALSE(pull.IsParked());
    CHECK(pull->version == GlobalStep(step + 1));
    CHECK(test::ValuesOf(pull->pieces[0]) == std::vector<float>{4});
    CHECK(test::ValuesOf(pull->pieces[1]) == std::vector<float>{4 - static_cast<float>(step + 1)});
  }
  CHECK(harness.shard.Report().pending.size() == 1);
}

TEST_CASE("a gradient of a frozen variable is refused by name and changes nothing") {
  Harness harness(HalfFrozen());
  const auto closed = harness.Grant(0, 1);
  const auto refused =
      harness.shard.Push(Message(IdentityOf(0), 1, 0).Whole(1, Shape({1}), {1}).Ready());
  CHECK(absl::IsInvalidArgument(refused.status()));
  CHECK(absl::StrContains(refused.status().message(), "\"fixed\" (1): it is frozen"));
  CHECK(closed.IsParked());
  CHECK(harness.Push(0, 1, 0, 0, {1}) == PushStatus::kAccepted);
  CHECK(harness.Read(1, 1) == std::vector<float>{4});
}

TEST_CASE(
    "a shard whose variables are all frozen closes every step that is granted, and no other") {
  Harness harness(
      PlanOf(PlacementOf({{.name = "fixed", .dims = {2}, .initial = 4, .frozen = true}}), 1, 1));
  CHECK(harness.Pull(0, 1, {{VariableId(0)}}).IsParked());
  for (int64_t step = 0; step < 3; ++step) {
    const auto closed = harness.Grant(step, 1);
    REQUIRE_FALSE(closed.IsParked());
    CHECK(closed->shard_step == GlobalStep(step + 1));
    CHECK(harness.Read(step + 1, 0) == std::vector<float>{4, 4});
  }
}

TEST_CASE(
    "a shard that is frozen as a whole runs ahead and still has the version of the step at hand") {
  Harness harness(
      PlanOf(PlacementOf({{.name = "fixed", .dims = {2}, .initial = 4, .frozen = true}}), 1, 1));
  // The chief keeps two grants parked.
  CHECK_FALSE(harness.Grant(0, 1).IsParked());
  CHECK_FALSE(harness.Grant(1, 1).IsParked());
  for (const int64_t version : {0, 1, 2}) {
    CHECK(harness.Read(version, 0) == std::vector<float>{4, 4});
  }
  CHECK(harness.Pull(0, 3, {{VariableId(0)}}).IsParked());
}

TEST_CASE("a frozen variable is saved without slots, and begins with fresh ones when it thaws") {
  const lockstep::test::TemporaryFolder root;
  CreateVariablesRequest plan = HalfFrozen();
  plan.mutable_optimizer()->mutable_momentum()->set_momentum(.9f);
  Harness harness(plan);
  const auto closed = harness.Grant(
      {.command = kCommand, .step = GlobalStep(0), .learning_rate = 1, .keep_slots = true});
  CHECK(harness.Push(0, 1, 0, 0, {1}) == PushStatus::kAccepted);
  REQUIRE_FALSE(closed.IsParked());
  const std::string folder = CheckpointFolder(root.path(), 1);
  const auto saved = harness.shard.Save(kCommand, GlobalStep(1), folder);
  REQUIRE(saved.ok());
  std::vector<std::string> names;
  for (const TensorRecord& tensor : saved->tensors) names.push_back(tensor.name);
  CHECK(names == std::vector<std::string>{"fixed", "w", "w/momentum"});
  test::Committed(root.path(), 1, "momentum", {*saved});

  plan.mutable_placement()->mutable_variables(1)->set_frozen(false);
  plan.set_restore_from(folder);
  plan.set_start_step(1);
  Shard told(ShardOptions{});
  REQUIRE(told.SetView(test::ViewOf(plan.total_num_replicas())).ok());
  CHECK(told.CreateVariables(plan)->missing_slots == std::vector<std::string>{"fixed/momentum"});
  CHECK(told.CreateVariables(plan)->missing_slots.empty());
  Harness thawed(plan);
  const auto next = thawed.Grant(1, 1);
  for (const uint32_t variable : {0, 1}) thawed.Push(0, 1, 1, variable, {1});
  REQUIRE_FALSE(next.IsParked());
  CHECK(thawed.Read(2, 1) == std::vector<float>{3});
  CHECK(thawed.Read(2, 0)[0] == Approx(3 - 1.9f));
}

}  // namespace
}  // namespace lockstep::ps
