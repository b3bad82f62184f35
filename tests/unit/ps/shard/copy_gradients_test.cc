// What workers are answered that send their gradients again to a copy that became the primary.
#include <catch2/catch.hpp>
#include <limits>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/limits.h"
#include "tests/unit/ps/shard/copy_pair.h"

namespace lockstep::ps {
namespace {

using test::IdentityOf;
using test::Message;
using test::Pair;
using test::PlanOfPair;

// The gradients of three workers, of which a step needs two.
struct PairWithBackup : Pair {
  PairWithBackup() : Pair(PlanOfThree(), 3) {}

  static CreateVariablesRequest PlanOfThree() {
    CreateVariablesRequest plan = PlanOfPair();
    plan.set_total_num_replicas(3);
    return plan;
  }
  static PushStatus PushA(test::Harness* to, uint32_t worker, uint64_t step) {
    return to->Push(worker, step + 1, static_cast<int64_t>(step), 0, {1, 1});
  }
  static PushStatus PushB(test::Harness* to, uint32_t worker, uint64_t step) {
    return to->Push(worker, step + 1, static_cast<int64_t>(step), 1, {1});
  }
};

TEST_CASE("a copy that becomes the primary answers gradients as the lost ps would have") {
  PairWithBackup pair;
  pair.primary.Grant(0, 2);
  CHECK(pair.PushA(&pair.primary, 0, 0) == PushStatus::kAccepted);
  CHECK(pair.PushA(&pair.primary, 2, 0) == PushStatus::kAccepted);
  CHECK(pair.PushA(&pair.primary, 1, 0) == PushStatus::kStale);
  CHECK(pair.PushB(&pair.primary, 1, 0) == PushStatus::kAccepted);
  CHECK(pair.PushB(&pair.primary, 0, 0) == PushStatus::kAccepted);
  pair.CopyAll();
  // Of the next step one variable has closed, of the other one a gradient is lost.
  pair.primary.Grant(1, 2);
  for (const uint32_t worker : {0u, 2u}) pair.PushA(&pair.primary, worker, 1);
  CHECK(pair.PushB(&pair.primary, 0, 1) == PushStatus::kAccepted);
  pair.CopyAll();
  REQUIRE(pair.Promote(0).ok());
  CHECK(pair.copy.shard.Report().accepted == 6);
  CHECK(pair.copy.shard.Report().stale == 1);

  // Worker 1 has not heard of the end of step 0.
  CHECK(pair.PushA(&pair.copy, 1, 0) == PushStatus::kStale);
  CHECK(pair.PushB(&pair.copy, 1, 0) == PushStatus::kAccepted);
  for (const uint32_t worker : {0u, 2u}) {
    CHECK(pair.PushA(&pair.copy, worker, 1) == PushStatus::kAccepted);
  }
  CHECK(pair.PushA(&pair.copy, 1, 1) == PushStatus::kStale);
  CHECK(pair.copy.shard.Report().accepted == 6);
  // What was lost counts anew.
  const auto grant = pair.copy.Grant(1, 2);
  CHECK(pair.PushB(&pair.copy, 0, 1) == PushStatus::kAccepted);
  CHECK(grant.IsParked());
  CHECK(pair.PushB(&pair.copy, 2, 1) == PushStatus::kAccepted);
  CHECK_FALSE(grant.IsParked());
  CHECK(pair.copy.shard.Report().accepted == 8);
}

// The copy hears of the gradients that count alone.
TEST_CASE(
    "a copy that becomes the primary takes the next push of a backup that was late for long") {
  PairWithBackup pair;
  constexpr uint64_t kLate = limits::kMaxPushSeqGap + 2;
  for (uint64_t step = 0; step < kLate; ++step) {
    const std::vector<uint32_t> in_order =
        step == 0 ? std::vector<uint32_t>{0, 1, 2} : std::vector<uint32_t>{0, 2, 1};
    pair.primary.Grant(static_cast<int64_t>(step), 2);
    for (const uint32_t worker : in_order) {
      pair.PushA(&pair.primary, worker, step);
      pair.PushB(&pair.primary, worker, step);
    }
    pair.CopyAll();
  }
  REQUIRE(pair.Promote(0).ok());
  pair.copy.Grant(static_cast<int64_t>(kLate), 2);
  CHECK(pair.PushA(&pair.copy, 1, kLate) == PushStatus::kAccepted);
}

TEST_CASE("a worker's successor sends its gradient anew to a copy that became the primary") {
  Pair pair;
  pair.primary.Grant(0, 2);
  for (const uint32_t worker : {0u, 1u}) pair.primary.Push(worker, 1, 0, 0, {1, 1});
  pair.CopyAll();
  View view = test::ViewOf(1);
  view.members.push_back({WorkerIndex(1), Incarnation(999)});
  REQUIRE(pair.copy.shard.SetView(view).ok());
  pair.copy.Grant(0, 2);
  WorkerIdentity successor = IdentityOf(1);
  successor.incarnation = Incarnation(999);
  const auto pushed = pair.copy.shard.Push(
      Message(successor, 1, 0).Whole(0, Shape({2}), {1, 1}).Whole(1, Shape({1}), {1}).Ready());
  REQUIRE(pushed.ok());
  CHECK(pushed->statuses == std::vector{PushStatus::kStale, PushStatus::kAccepted});
  CHECK(pair.copy.Push(0, 1, 0, 1, {1}) == PushStatus::kAccepted);
  CHECK(pair.copy.shard.GetView().shard_step == GlobalStep(1));
}

TEST_CASE("a copy that heard of a worker's successor first answers it as the lost ps would have") {
  Pair pair;
  pair.primary.Grant(0, 2);
  for (const uint32_t worker : {0u, 1u}) pair.primary.Push(worker, 1, 0, 0, {1, 1});
  WorkerIdentity successor = IdentityOf(0);
  successor.incarnation = Incarnation(999);
  View view = test::ViewOf(2);
  view.copy_address = test::kCopyAddress;
  view.members[0].incarnation = successor.incarnation;
  REQUIRE(pair.primary.shard.SetView(view).ok());
  Message message(successor, 1, 0);
  const PushArguments& push = message.Whole(1, Shape({1}), {1}).Ready();
  REQUIRE(pair.primary.shard.Push(push)->statuses == std::vector{PushStatus::kAccepted});
  pair.primary.Push(1, 1, 0, 1, {1});

  REQUIRE(pair.target->sent.size() == 2);
  for (const size_t mean : {1, 0}) {
    REQUIRE(test::Deliver(pair.target->sent[mean].means, &pair.copy.shard).ok());
  }
  view.copy_address.clear();
  REQUIRE(pair.copy.shard.SetView(view).ok());
  const auto repeated = pair.copy.shard.Push(push);
  REQUIRE(repeated.ok());
  CHECK(repeated->statuses == std::vector{PushStatus::kAccepted});
}

// Rows of 4 MiB: a gradient has 64 MiB at most.
const Shape kLargeRows({2, 1 << 20});

CreateVariablesRequest PlanOfLargeRows() {
  CreateVariablesRequest plan = test::PlanOf(
      test::PlacementOf({{.name = "table", .dims = {2, 1 << 20}, .sparse = true}}), 2, 2);
  plan.mutable_sync()->set_ps_replicas(1);
  plan.mutable_sync()->set_replicas_to_aggregate(2);
  return plan;
}

TEST_CASE("a copy takes the mean of sparse gradients whose rows were not merged") {
  constexpr size_t kRows = 9;
  Pair pair(PlanOfLargeRows());
  const auto closed = pair.primary.Grant(0, 2);
  for (const uint32_t worker : {0u, 1u}) {
    // Each row of the one is missing in the other: the mean has all of both.
    const auto pushed =
        pair.primary.shard.Push(Message(IdentityOf(worker), 1, 0)
                                    .Rows(0, kLargeRows, std::vector<int64_t>(kRows, worker),
                                          std::vector<float>(kRows * kLargeRows.dim(1), 1))
                                    .Ready(1 << 20));
    REQUIRE(pushed.ok());
    CHECK(pushed->statuses == std::vector{PushStatus::kAccepted});
  }
  REQUIRE(pair.target->sent.size() == 1);
  REQUIRE(pair.target->sent[0].means.gradients[0].rows->indices.size() == 2 * kRows);
  pair.CopyAll();
  CHECK_FALSE(closed.IsParked());
  CHECK(pair.copy.shard.GetView().shard_step == GlobalStep(1));
}

TEST_CASE("a copy refuses a mean with more rows than its gradients can have") {
  Pair pair(PlanOfLargeRows());
  const auto push = [&](int64_t rows) {
    Message message(test::Primary(), 1, 0);
    message.Rows(0, kLargeRows, {0}, {}, 0, 8);
    message.arguments().pieces[0].rows = rows;
    message.arguments().mean = MeanArguments{.learning_rate = 1};
    for (const uint32_t worker : {0u, 1u}) {
      const WorkerIdentity of = IdentityOf(worker);
      message.arguments().mean->mean_of.push_back({of.worker, of.incarnation, PushSeq(1)});
    }
    return pair.copy.shard.Push(message.Ready()).status();
  };
  for (const int64_t rows : {int64_t{32}, std::numeric_limits<int64_t>::max()}) {
    CAPTURE(rows);
    const absl::Status refused = push(rows);
    CHECK(absl::IsInvalidArgument(refused));
    CHECK(absl::StrContains(refused.message(), "the mean of 2 sparse gradients"));
  }
  CHECK(push(31).ok());
}

}  // namespace
}  // namespace lockstep::ps
