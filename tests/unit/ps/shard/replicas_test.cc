// What a shard keeps of replica views, in a job whose workers come and go.
#include <catch2/catch.hpp>

#include "ps/shard/held_budget.h"
#include "ps/shard/shard_view.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

constexpr auto kHosted = ShardView::Hosted::kOnlyHere;

ReplicaViews ReplicasOf(uint64_t number, int64_t first) {
  ReplicaViews views;
  REQUIRE(
      views.Add({.number = number, .first = GlobalStep(first), .workers = {WorkerIndex(0)}}).ok());
  return views;
}

TEST_CASE("an older replica view changes nothing, in whatever term it comes") {
  ShardView admission;
  View view{test::CommandOf(7, 3), Epoch(5), {}, ShardIndex(2)};
  view.replica_views = ReplicasOf(4, 10);
  REQUIRE(admission.SetView(view, kHosted).ok());
  View older = view;
  older.command.set_term(4);
  older.replica_views = ReplicasOf(3, 8);
  const absl::Status refused = admission.SetView(older, kHosted);
  CHECK(absl::IsAborted(refused));
  CHECK(refused.message() == "replica view 3 is over: the shard has view 4");
  CHECK(admission.term() == Term(3));
  CHECK(admission.replica_views() == view.replica_views);
  // A view that names none leaves them as they are; another epoch has its own.
  older.replica_views = {};
  REQUIRE(admission.SetView(older, kHosted).ok());
  CHECK(admission.replica_views() == view.replica_views);
  older.epoch = Epoch(6);
  REQUIRE(admission.SetView(older, kHosted).ok());
  CHECK(admission.replica_views().empty());
  older.replica_views = ReplicasOf(1, 0);
  CHECK(admission.SetView(older, kHosted).ok());
}

TEST_CASE("a token of a view that is over, asked for again, has no part in it") {
  CreateVariablesRequest plan = test::OneVariable(1, 1);
  plan.mutable_sync()->set_min_replicas(1);
  test::Harness h(plan);
  View view = test::ViewOf(2);
  view.replica_views = ReplicasOf(1, 0);
  REQUIRE(h.shard.SetView(view).ok());
  // Worker 1 is in no view. The answer is lost.
  const auto first = h.Dequeue(1, 1);
  h.Push(0, 1, 0, 0, {1});
  h.Grant(0, 1);
  REQUIRE(h.shard.CommitStep(test::kCommand, GlobalStep(0), false).ok());
  REQUIRE_FALSE(first.IsParked());
  CHECK(first->step == GlobalStep(1));
  CHECK(first->share == ReplicaShare{1, 1, 1});
  h.Push(0, 2, 1, 0, {1});
  h.Grant(1, 1);
  REQUIRE(h.shard.CommitStep(test::kCommand, GlobalStep(1), false).ok());
  view.replica_views = ReplicasOf(2, 2);
  REQUIRE(h.shard.SetView(view).ok());

  const auto again = h.Dequeue(1, 1);
  REQUIRE_FALSE(again.IsParked());
  CHECK(again->step == GlobalStep(1));
  CHECK(again->share == ReplicaShare{});
  const auto next = h.Dequeue(1, 2);
  REQUIRE_FALSE(next.IsParked());
  CHECK(next->step == GlobalStep(2));
  CHECK(next->share == ReplicaShare{2, 1, 1});
}

TEST_CASE("a budget grows with the replicas of a step, and never shrinks") {
  HeldBudget fixed({{Shape({10}), 40}}, 100, 2);
  fixed.SetReplicas(3, 2);
  CHECK(fixed.budget() == 100);
  fixed.SetReplicas(3, 3);  // of the largest, three must fit
  CHECK(fixed.budget() == 120);
  fixed.SetReplicas(1, 1);
  CHECK(fixed.budget() == 120);
  HeldBudget follows({{Shape({10}), 40}, {Shape({2}), 8}}, 96, 2, 48);
  follows.SetReplicas(5, 2);
  CHECK(follows.budget() == 240);
  std::vector<Tensor> held;
  for (int i = 0; i < 5; ++i) {
    for (const size_t variable : {1, 0}) {
      std::optional<Tensor> buffer = follows.Acquire(variable, DType::kFloat32, 0);
      REQUIRE(buffer.has_value());
      held.push_back(*std::move(buffer));
    }
  }
  CHECK_FALSE(follows.Acquire(0, DType::kFloat32, 0).has_value());
}

TEST_CASE("where workers come and go, a step may be to need more gradients than there are yet") {
  CreateVariablesRequest plan =
      test::PlanOf(test::PlacementOf({{"w", {2}}}), /*total=*/1, /*aggregate=*/3);
  plan.mutable_sync()->set_min_replicas(1);
  plan.mutable_sync()->set_replicas_to_aggregate(3);
  test::Harness h(plan);
  View view = test::ViewOf(3);
  REQUIRE(view.replica_views
              .Add({.number = 1,
                    .first = GlobalStep(0),
                    .workers = {WorkerIndex(0), WorkerIndex(1), WorkerIndex(2)},
                    .aggregate = 3})
              .ok());
  REQUIRE(h.shard.SetView(view).ok());
  const auto grant = h.Grant(0, 3);
  for (const uint32_t worker : {0u, 1u, 2u}) h.Push(worker, 1, 0, 0, {1, 4});
  CHECK_FALSE(grant.IsParked());
}

}  // namespace
}  // namespace lockstep::ps
