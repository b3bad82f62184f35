// What a primary makes of a target that is lost, or that is refused late.
#include <catch2/catch.hpp>
#include <memory>

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
