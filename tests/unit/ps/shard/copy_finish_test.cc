// A copy hears of the end of the job before its primary does.
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "tests/unit/ps/shard/copy_pair.h"
#include "tests/unit/ps/shard/watched_payload.h"

namespace lockstep::ps {
namespace {

using test::kCommand;
using test::Message;

// STALE would tell the primary that the copy serves in its place.
TEST_CASE("a copy that has heard of the end first has its primary send a mean again") {
  test::Pair pair;
  pair.primary.Grant(0, 2);
  pair.PushStep();
  REQUIRE(pair.copy.shard.Finish(kCommand).ok());
  const absl::Status status = test::Deliver(pair.target->sent[0].means, &pair.copy.shard).status();
  CAPTURE(status.ToString());
  CHECK(absl::IsUnavailable(status));
  CHECK(absl::StrContains(status.message(), "the job is over"));
}

TEST_CASE("a mean that the end of the job meets on its way is not stale, and is sent again") {
  // A mean in parts: the copy keeps its messages.
  constexpr int64_t kSize = int64_t{1} << 17;
  constexpr uint64_t kHalf = kSize * sizeof(float) / 2;
  const std::vector<float> values(kSize, 1);
  CreateVariablesRequest plan = test::PlanOf(test::PlacementOf({{"w", {kSize}}}), 1, 1);
  plan.mutable_sync()->set_ps_replicas(1);
  plan.mutable_sync()->set_replicas_to_aggregate(1);
  test::Harness copy;
  View view = test::ViewOf(0);
  view.is_copy = true;
  REQUIRE(copy.shard.SetView(view).ok());
  REQUIRE(copy.shard.CreateVariables(plan).ok());
  Message half(test::Primary(), 1, 0);
  half.Chunk(0, Shape({kSize}), values, 0, kHalf).arguments().mean =
      MeanArguments{.learning_rate = 1};
  // The second push gives up the first one. When the copy lets that go, it has yet to copy the
  // second one.
  bool is_over = false;
  REQUIRE(
      copy.shard
          .Push(test::Watched(std::move(half), [&] { is_over = copy.shard.Finish(kCommand).ok(); }))
          .ok());
  REQUIRE_FALSE(is_over);
  Message whole(test::Primary(), 2, 0);
  whole.Whole(0, Shape({kSize}), values).arguments().mean = MeanArguments{.learning_rate = 1};
  const auto pushed = copy.shard.Push(whole.Ready());
  REQUIRE(is_over);
  REQUIRE(pushed.ok());
  CHECK(pushed->statuses == std::vector{PushStatus::kPending});
  CHECK(absl::IsUnavailable(copy.shard.Push(whole.Ready()).status()));
}

}  // namespace
}  // namespace lockstep::ps
