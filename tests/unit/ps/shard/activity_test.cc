// What tells that workers use a shard.
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::IdentityOf;
using test::Message;
using test::PlacementOf;
using test::PlanOf;

struct ActiveShard {
  // Since it was last asked.
  bool HasChanged() {
    const ShardActivity before = std::exchange(last, harness.shard.Activity());
    return last != before;
  }

  Harness harness{PlanOf(PlacementOf({{"w", {2}}}), 2, 2)};
  ShardActivity last = harness.shard.Activity();
};

TEST_CASE("a shard that nobody uses shows no activity") {
  ActiveShard active;
  CHECK(active.last.has_variables);
  active.harness.shard.Report();
  active.harness.shard.GetView();
  CHECK_FALSE(active.HasChanged());
}

TEST_CASE("whatever workers do with a shard shows as activity") {
  ActiveShard active;
  active.harness.Grant(0, 2);
  active.HasChanged();
  // A push of a part, and of the rest.
  const Shape shape({2});
  const std::vector<float> gradient = {1, 1};
  REQUIRE(active.harness.shard
              .Push(Message(IdentityOf(0), 1, 0).Chunk(0, shape, gradient, 0, 4).Ready())
              .ok());
  CHECK(active.HasChanged());
  REQUIRE(active.harness.shard
              .Push(Message(IdentityOf(0), 1, 0).Chunk(0, shape, gradient, 4, 4).Ready())
              .ok());
  CHECK(active.HasChanged());
  // Pulls: answered, and parked.
  CHECK(active.harness.Read(0, 0) == std::vector<float>{0, 0});
  CHECK(active.HasChanged());
  const auto parked = active.harness.Pull(0, 1, {{VariableId(0)}});
  CHECK(parked.IsParked());
  CHECK(active.HasChanged());
  // The same pull again, after its deadline, is no progress.
  const auto again = active.harness.Pull(0, 1, {{VariableId(0)}});
  CHECK(again.IsParked());
  CHECK_FALSE(active.HasChanged());
  // A step.
  const GlobalStep before = active.last.shard_step;
  active.harness.Push(1, 1, 0, 0, {1, 1});
  CHECK_FALSE(again.IsParked());
  CHECK(active.HasChanged());
  CHECK(active.last.shard_step == before.next());
}

TEST_CASE("the end of an epoch shows as activity") {
  ActiveShard active;
  View view = test::ViewOf(2);
  view.epoch = Epoch(2);
  REQUIRE(active.harness.shard.SetView(view).ok());
  CHECK(active.HasChanged());
  CHECK_FALSE(active.last.has_variables);
}

}  // namespace
}  // namespace lockstep::ps
