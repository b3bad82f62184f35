// What a primary makes of a target that is lost, or that is refused late.
#include <catch2/catch.hpp>
#include <memory>
#include <utility>

#include "tests/unit/ps/shard/copy_pair.h"

namespace lockstep::ps {
namespace {

using test::HeldMeans;
using test::Pair;
using test::PlanOfPair;

void PushStepTo(test::Harness* primary, int64_t step) {
  for (const uint32_t worker : {0u, 1u}) {
    primary->Push(worker, static_cast<uint64_t>(step) + 1, step, 0, {1, 1});
    primary->Push(worker, static_cast<uint64_t>(step) + 1, step, 1, {1});
  }
}

TEST_CASE("a step that waits for a new copy is shown when the copy is lost") {
  const auto held = std::make_shared<HeldMeans>();
  // As CopySenders: a target that nobody holds is closed.
  const auto make_target = [&held](const CopyTargetOptions& options) {
    held->options = options;
    return std::shared_ptr<CopyTarget>(
        held.get(), [held](CopyTarget*) { held->End(absl::CancelledError("closed")); });
  };
  test::Harness primary(PlanOfPair(), {.make_copy_target = make_target});
  View view = test::ViewOf(2);
  view.copy_address = test::kCopyAddress;
  view.makes_copy = true;
  REQUIRE(primary.shard.SetView(view).ok());
  primary.Grant(0, 2);
  PushStepTo(&primary, 0);
  REQUIRE(held->begun == GlobalStep(1));

  const auto grant = primary.Grant(1, 2);
  PushStepTo(&primary, 1);
  REQUIRE(grant.IsParked());
  held->options.lost(absl::AbortedError("the copy has no memory"));
  REQUIRE_FALSE(grant.IsParked());
  CHECK(grant.status().ok());
  CHECK(primary.Read(2, 1) == std::vector<float>{-2});
  CHECK_FALSE(primary.shard.GetView().has_copy);
}

// Tells those who wait of its end only when the test says so.
class LateEnd final : public HeldMeans {
 public:
  void End(const absl::Status&) override {}
};

// Lets the shard end that waits for a target.
struct EndAtExit {
  ~EndAtExit() { target->HeldMeans::End(absl::CancelledError("over")); }
  std::shared_ptr<HeldMeans> target;
};

TEST_CASE("a copy that was taken away closes no step of its successor when it ends late") {
  CreateVariablesRequest plan = test::PairWithIdleSteps();
  plan.mutable_placement()->set_turns(1, 2);  // steps 1 and 2 have no gradients here
  const auto first = std::make_shared<LateEnd>(), second = std::make_shared<LateEnd>();
  auto next = first;
  test::Harness primary({.make_copy_target = [&next](const auto&) { return next; }});
  const EndAtExit end_first{first}, end_second{second};
  View view = test::ViewOf(2);
  view.copy_address = test::kCopyAddress;
  REQUIRE(primary.shard.SetView(view).ok());
  REQUIRE(primary.shard.CreateVariables(plan).ok());
  primary.Grant(0, 2);
  PushStepTo(&primary, 0);
  for (HeldMeans::Sent& sent : std::exchange(first->sent, {})) sent.taken(absl::OkStatus());
  const auto idle = primary.Grant(1, 2);
  REQUIRE(first->sent.size() == 1);
  REQUIRE(idle.IsParked());

  view.copy_address.clear();
  REQUIRE(primary.shard.SetView(view).ok());
  next = second;
  view.copy_address = "copy:2";
  view.makes_copy = true;
  REQUIRE(primary.shard.SetView(view).ok());
  CHECK(primary.Grant(1, 2).status().ok());
  REQUIRE(second->begun == GlobalStep(2));
  const auto closed = primary.Grant(2, 2);
  REQUIRE(second->sent.size() == 1);
  CHECK(second->sent[0].means.step == GlobalStep(2));
  first->sent[0].taken(absl::OkStatus());
  CHECK(closed.IsParked());
  CHECK(primary.shard.GetView().shard_step == GlobalStep(2));
  second->sent[0].taken(absl::OkStatus());
  CHECK(closed.status().ok());
}

TEST_CASE("a late refusal does not depose a ps that has become a copy") {
  Pair pair;
  View view = test::ViewOf(0);
  view.is_copy = true;
  REQUIRE(pair.primary.shard.SetView(view).ok());
  pair.target->options.refused(absl::AbortedError("the copy was promoted"));
  CreateVariablesRequest plan = PlanOfPair();
  plan.set_awaits_state(true);
  REQUIRE(pair.primary.shard.CreateVariables(plan).ok());
  CHECK(pair.primary.shard.Admit(test::Primary()).ok());
}

TEST_CASE("a late refusal does not depose a ps that serves again in the same epoch") {
  Pair pair;
  View view = test::ViewOf(0);
  view.is_copy = true;
  REQUIRE(pair.primary.shard.SetView(view).ok());
  REQUIRE(pair.primary.shard.CreateVariables(PlanOfPair()).ok());
  REQUIRE(pair.primary.shard.SetView(test::ViewOf(2)).ok());
  pair.target->options.refused(absl::AbortedError("the copy was promoted"));
  CHECK(pair.primary.shard.Admit(test::IdentityOf(0)).ok());
}

}  // namespace
}  // namespace lockstep::ps
