// An asynchronous job: each push is a step of its own.
#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::IdentityOf;
using test::kCommand;
using test::Message;
using test::PlacementOf;
using test::PlanOf;

CreateVariablesRequest AsyncPlan(uint32_t workers, std::optional<int64_t> max_staleness = {}) {
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"w", {1}}}), workers, workers);
  plan.set_asynchronous(true);
  if (max_staleness.has_value()) plan.set_max_staleness(*max_staleness);
  plan.mutable_optimizer()->mutable_learning_rate()->set_base(1);
  return plan;
}

TEST_CASE("each push is applied at once, without grant or token, and moves the global step") {
  Harness f(AsyncPlan(3));
  for (uint32_t i = 0; i < 9; ++i) {
    CHECK(f.Push(i % 3, i / 3 + 1, i, 0, {1}) == PushStatus::kAccepted);
    CHECK(f.Read(i + 1, 0) == std::vector<float>{-static_cast<float>(i + 1)});
    CHECK(f.shard.Report().state.global_step == GlobalStep(i + 1));
    CHECK(f.shard.Report().state.shard_step == GlobalStep(i + 1));
  }
  CHECK(f.shard.Report().accepted == 9);
  CHECK(f.shard.Report().held_bytes == 0);
}

TEST_CASE("a pull is answered at once with the newest values, whatever version it names") {
  Harness f(AsyncPlan(2));
  f.Push(0, 1, 0, 0, {1});
  f.Push(1, 1, 0, 0, {2});
  for (const int64_t version : {0, 1, 2, 1000}) {
    const auto pulled = f.Pull(0, version, {{VariableId(0)}});
    REQUIRE_FALSE(pulled.IsParked());
    CHECK(pulled->version == GlobalStep(2));
    CHECK(test::ValuesOf(pulled->pieces[0]) == std::vector<float>{-3});
  }
}

TEST_CASE("staleness counts the pushes since the stamp, and a bound makes gradients stale") {
  Harness f(AsyncPlan(2, 2));
  CHECK(f.Push(0, 1, 0, 0, {1}) == PushStatus::kAccepted);
  CHECK(f.Push(0, 2, 1, 0, {1}) == PushStatus::kAccepted);
  CHECK(f.Push(1, 1, 0, 0, {1}) == PushStatus::kAccepted);  // two others since
  CHECK(f.Push(0, 3, 0, 0, {1}) == PushStatus::kStale);     // three
  CHECK(f.Push(0, 4, 3, 0, {1}) == PushStatus::kAccepted);
  CHECK(f.Push(1, 2, 3, 0, {1}) == PushStatus::kAccepted);  // one
  CHECK(f.Read(5, 0) == std::vector<float>{-5});
  CHECK(f.shard.Report().stale == 1);
  CHECK(f.shard.Report().staleness == std::vector<uint64_t>{3, 1, 1});
}

TEST_CASE("without a bound nothing is stale") {
  Harness f(AsyncPlan(2));
  for (uint64_t seq = 1; seq <= 20; ++seq) {
    CHECK(f.Push(0, seq, 0, 0, {1}) == PushStatus::kAccepted);
  }
  // 0, 1, 2-3, 4-7, 8-15, 16-19.
  CHECK(f.shard.Report().staleness == std::vector<uint64_t>{1, 1, 2, 4, 8, 4});
}

TEST_CASE("towers of a worker push by themselves, each with a sequence of its own") {
  Harness f(AsyncPlan(1));
  const auto push = [&](uint32_t tower, uint64_t push_seq, int64_t stamp) {
    WorkerIdentity worker = IdentityOf(0);
    worker.tower = tower;
    const auto result =
        f.shard.Push(Message(worker, push_seq, stamp).Whole(0, Shape({1}), {1}).Ready());
    return result->statuses.at(0);
  };
  CHECK(push(0, 1, 0) == PushStatus::kAccepted);
  CHECK(push(1, 1, 0) == PushStatus::kAccepted);
  CHECK(push(255, 1, 0) == PushStatus::kAccepted);
  CHECK(push(1, 1, 0) == PushStatus::kAccepted);  // repeated
  CHECK(push(1, 2, 3) == PushStatus::kAccepted);
  CHECK(f.Read(4, 0) == std::vector<float>{-4});
  CHECK(f.shard.Report().duplicates == 1);
}

TEST_CASE("slots advance with the gradient of each tower") {
  CreateVariablesRequest plan = AsyncPlan(1);
  plan.mutable_optimizer()->mutable_momentum()->set_momentum(0.9f);
  Harness f(plan);
  // Gradients 1 and 3, each times 1 / 2: tensorpack's scale_gradient.
  WorkerIdentity worker = IdentityOf(0);
  REQUIRE(f.shard.Push(Message(worker, 1, 0).Whole(0, Shape({1}), {0.5f}).Ready()).ok());
  worker.tower = 1;
  REQUIRE(f.shard.Push(Message(worker, 1, 0).Whole(0, Shape({1}), {1.5f}).Ready()).ok());
  // The slot is 0.5, then 0.9 * 0.5 + 1.5 = 1.95; one push of the mean would leave 2.
  CHECK(f.Read(2, 0).at(0) == Approx(-(0.5 + 1.95)));
}

TEST_CASE("a tower beyond the most, or of a synchronous job, is refused") {
  WorkerIdentity worker = IdentityOf(0);
  worker.tower = 256;
  Harness asynchronous(AsyncPlan(1));
  const absl::Status beyond =
      asynchronous.shard.Push(Message(worker, 1, 0).Whole(0, Shape({1}), {1}).Ready()).status();
  CHECK(absl::IsInvalidArgument(beyond));
  CHECK(absl::StrContains(beyond.message(), "worker.tower of worker 0: expected 0 to 255"));
  worker.tower = 1;
  Harness synchronous(PlanOf(PlacementOf({{"w", {1}}}), 1, 1));
  const absl::Status refused =
      synchronous.shard.Push(Message(worker, 1, 0).Whole(0, Shape({1}), {1}).Ready()).status();
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(absl::StrContains(refused.message(), "expected 0, since only an asynchronous job"));
  test::Reply<PullResult> pulled;
  synchronous.shard.Pull({worker, GlobalStep(0), {{VariableId(0)}}}, pulled.done());
  CHECK(absl::IsInvalidArgument(pulled.status()));
}

TEST_CASE("a repeated push is applied once") {
  Harness f(AsyncPlan(1));
  CHECK(f.Push(0, 1, 0, 0, {1}) == PushStatus::kAccepted);
  CHECK(f.Push(0, 1, 0, 0, {1}) == PushStatus::kAccepted);
  CHECK(f.Read(1, 0) == std::vector<float>{-1});
  CHECK(f.shard.Report().duplicates == 1);
}

TEST_CASE("the learning rate follows the schedule by the number of pushes") {
  CreateVariablesRequest plan = AsyncPlan(1);
  auto* schedule = plan.mutable_optimizer()->mutable_learning_rate()->mutable_piecewise();
  schedule->add_boundaries(1);
  schedule->add_values(1);
  schedule->add_values(0.25f);
  Harness f(plan);
  for (uint64_t seq = 1; seq <= 4; ++seq) f.Push(0, seq, 0, 0, {1});
  CHECK(f.Read(4, 0) == std::vector<float>{-2.5});
}

TEST_CASE("variables of one push may come apart, and one that runs ahead waits for the others") {
  CreateVariablesRequest plan = AsyncPlan(2);
  *plan.mutable_placement() = PlacementOf({{"a", {1}}, {"b", {1}}});
  Harness f(plan);
  f.Push(0, 1, 0, 0, {1});  // a of the first
  CHECK(f.shard.Report().state.shard_step == GlobalStep(0));
  f.Push(1, 1, 0, 0, {10});  // a of the second: after b of any
  f.Push(1, 1, 0, 1, {10});
  CHECK(f.shard.Report().state.shard_step == GlobalStep(1));
  f.Push(0, 1, 0, 1, {1});
  CHECK(f.shard.Report().state.shard_step == GlobalStep(2));
  CHECK(f.Read(2, 0) == std::vector<float>{-11});
  CHECK(f.Read(2, 1) == std::vector<float>{-11});
}

TEST_CASE("sparse gradients are applied at once too, in the order of arrival") {
  CreateVariablesRequest plan = AsyncPlan(2);
  *plan.mutable_placement() = PlacementOf({{.name = "t", .dims = {3, 1}, .sparse = true}});
  Harness f(plan);
  const Shape table({3, 1});
  for (uint32_t worker : {1, 0}) {
    REQUIRE(f.shard.Push(Message(IdentityOf(worker), 1, 0).Rows(0, table, {2}, {1}).Ready()).ok());
  }
  CHECK(f.Read(2, 0) == std::vector<float>{0, 0, -2});
}

TEST_CASE("a chief's grant waits for a step and keeps its version") {
  Harness f(AsyncPlan(1));
  const auto kept = f.Grant(
      {.command = kCommand, .step = GlobalStep(1), .keep_values = true, .keep_slots = true});
  f.Push(0, 1, 0, 0, {1});
  CHECK(kept.IsParked());
  f.Push(0, 2, 1, 0, {1});
  REQUIRE_FALSE(kept.IsParked());
  CHECK(kept->shard_step == GlobalStep(2));
  for (uint64_t seq = 3; seq <= 9; ++seq) f.Push(0, seq, 2, 0, {1});
  const auto pulled = f.Pull(0, 2, {{VariableId(0)}});
  CHECK(pulled->version == GlobalStep(2));
  CHECK(test::ValuesOf(pulled->pieces[0]) == std::vector<float>{-2});
  CHECK_FALSE(f.Grant({.command = kCommand, .step = GlobalStep(3)}).IsParked());
  // Another chief changes nothing about it.
  View view = test::ViewOf(1);
  view.command.set_term(2);
  REQUIRE(f.shard.SetView(view).ok());
  f.Push(0, 10, 9, 0, {1});
  CHECK(f.Read(10, 0) == std::vector<float>{-10});
}

CreateVariablesRequest EndingPlan(uint32_t workers, int64_t end_step) {
  CreateVariablesRequest plan = AsyncPlan(workers);
  plan.set_end_step(end_step);
  return plan;
}

TEST_CASE("at the last step the shard stops by itself, whatever the chief does") {
  Harness f(EndingPlan(2, 3));
  const auto token = f.Dequeue(1, 7);
  for (uint64_t seq = 1; seq <= 2; ++seq) {
    const auto result =
        f.shard.Push(Message(IdentityOf(0), seq, 0).Whole(0, Shape({1}), {1}).Ready());
    REQUIRE(result.ok());
    CHECK_FALSE(result->done);
  }
  const auto last = f.shard.Push(Message(IdentityOf(0), 3, 2).Whole(0, Shape({1}), {1}).Ready());
  REQUIRE(last.ok());
  CHECK(last->statuses[0] == PushStatus::kAccepted);
  CHECK(last->done);
  const auto late = f.shard.Push(Message(IdentityOf(1), 1, 3).Whole(0, Shape({1}), {1}).Ready());
  REQUIRE(late.ok());
  CHECK(late->statuses[0] == PushStatus::kStale);
  CHECK(late->done);
  CHECK(f.Read(3, 0) == std::vector<float>{-3});
  CHECK(f.shard.Report().accepted == 3);
  CHECK(f.shard.Report().stale == 0);
  // A push that was applied is told so again.
  CHECK(f.Push(0, 3, 2, 0, {1}) == PushStatus::kAccepted);
  REQUIRE_FALSE(f.Dequeue(0, 1).IsParked());
  CHECK(f.Dequeue(0, 2)->done);
  CHECK_FALSE(token.IsParked());
}

TEST_CASE("no gradient is accepted for which no step is left") {
  CreateVariablesRequest plan = EndingPlan(3, 2);
  *plan.mutable_placement() = PlacementOf({{"a", {1}}, {"b", {1}}});
  Harness f(plan);
  CHECK(f.Push(0, 1, 0, 0, {1}) == PushStatus::kAccepted);   // applied: a waits for b
  CHECK(f.Push(1, 1, 0, 0, {10}) == PushStatus::kAccepted);  // held
  CHECK(f.Push(2, 1, 0, 0, {100}) == PushStatus::kStale);
  CHECK(f.Push(2, 1, 0, 1, {100}) == PushStatus::kAccepted);
  CHECK(f.Push(1, 1, 0, 1, {10}) == PushStatus::kAccepted);
  CHECK(f.shard.Report().state.shard_step == GlobalStep(2));
  CHECK(f.shard.Report().held_bytes == 0);
  CHECK(f.Read(2, 0) == std::vector<float>{-11});
  CHECK(f.Read(2, 1) == std::vector<float>{-110});
}

TEST_CASE("chunks that come in while others take the last step are dropped") {
  CreateVariablesRequest plan = EndingPlan(2, 1);
  *plan.mutable_placement() = PlacementOf({{"w", {2}}});
  Harness f(plan);
  const std::vector<float> ones = {1, 1};
  REQUIRE(f.shard.Push(Message(IdentityOf(0), 1, 0).Chunk(0, Shape({2}), ones, 0, 4).Ready()).ok());
  CHECK(f.Push(1, 1, 0, 0, {2, 2}) == PushStatus::kAccepted);
  const auto rest =
      f.shard.Push(Message(IdentityOf(0), 1, 0).Chunk(0, Shape({2}), ones, 4, 4).Ready());
  REQUIRE(rest.ok());
  CHECK(rest->statuses[0] == PushStatus::kStale);
  CHECK(f.shard.Report().held_bytes == 0);
  CHECK(f.Read(1, 0) == std::vector<float>{-2, -2});
}

TEST_CASE("a grant that comes late keeps what there is, under the number that it names") {
  Harness f(EndingPlan(1, 100));
  for (uint64_t seq = 1; seq <= 5; ++seq) f.Push(0, seq, 0, 0, {1});
  const auto late = f.Grant(
      {.command = kCommand, .step = GlobalStep(1), .keep_values = true, .keep_slots = true});
  REQUIRE_FALSE(late.IsParked());
  CHECK(late->shard_step == GlobalStep(5));
  f.Push(0, 6, 5, 0, {1});
  const auto pulled = f.Pull(0, 2, {{VariableId(0)}});
  CHECK(test::ValuesOf(pulled->pieces[0]) == std::vector<float>{-5});
  CHECK(f.Read(6, 0) == std::vector<float>{-6});
}

// Shard 1 of two. It knows nothing of the global step.
struct OtherShard : Harness {
  explicit OtherShard(const CreateVariablesRequest& plan) {
    REQUIRE(shard.SetView(test::ViewOf(plan.total_num_replicas(), 1)).ok());
    REQUIRE(shard.CreateVariables(plan).ok());
  }
};

CreateVariablesRequest OtherPlan(const std::vector<test::SpecText>& variables) {
  CreateVariablesRequest plan = EndingPlan(2, 100);
  *plan.mutable_placement() = PlacementOf(variables, 2);
  return plan;
}

TEST_CASE("another shard keeps its newest version at once and goes on, or stops there") {
  OtherShard f(OtherPlan({{.name = "w", .dims = {1}, .shard = 1}}));
  f.Push(0, 1, 0, 0, {1});
  CHECK_FALSE(f.Grant({.command = kCommand, .step = GlobalStep(40)}).IsParked());
  const auto kept = f.Grant({.command = kCommand, .step = GlobalStep(6), .keep_values = true});
  REQUIRE_FALSE(kept.IsParked());
  CHECK(kept->shard_step == GlobalStep(1));
  f.Push(1, 1, 0, 0, {10});
  CHECK(f.Read(2, 0) == std::vector<float>{-11});
  CHECK(f.Read(7, 0) == std::vector<float>{-1});
  const auto last =
      f.Grant({.command = kCommand, .step = GlobalStep(99), .keep_slots = true, .last = true});
  REQUIRE_FALSE(last.IsParked());
  CHECK(f.Push(1, 2, 2, 0, {10}) == PushStatus::kStale);
  CHECK(f.Read(100, 0) == std::vector<float>{-11});
}

TEST_CASE("between two variables of a push another shard keeps each as it is, and loses nothing") {
  OtherShard f(
      OtherPlan({{.name = "a", .dims = {1}, .shard = 1}, {.name = "b", .dims = {1}, .shard = 1}}));
  f.Push(0, 1, 0, 0, {1});
  const auto kept = f.Grant({.command = kCommand, .step = GlobalStep(6), .keep_slots = true});
  REQUIRE_FALSE(kept.IsParked());
  CHECK(f.Read(7, 0) == std::vector<float>{-1});
  CHECK(f.Read(7, 1) == std::vector<float>{0});
  f.Push(0, 1, 0, 1, {1});
  CHECK(f.shard.Report().state.shard_step == GlobalStep(1));
}

TEST_CASE("a shard without variables keeps nothing, and does not spin") {
  OtherShard f(OtherPlan({{.name = "w", .dims = {1}, .shard = 0}}));
  const auto kept = f.Grant({.command = kCommand, .step = GlobalStep(6), .keep_slots = true});
  REQUIRE_FALSE(kept.IsParked());
  CHECK(kept->shard_step == GlobalStep(0));
}

TEST_CASE("bound and end belong to an asynchronous job, the end after its start") {
  CreateVariablesRequest plan = EndingPlan(1, 5);
  plan.set_start_step(5);
  Shard late({});
  REQUIRE(late.SetView(test::ViewOf(1)).ok());
  CHECK(absl::IsInvalidArgument(late.CreateVariables(plan).status()));
  plan = EndingPlan(1, 5);
  plan.set_asynchronous(false);
  Shard synchronous({});
  REQUIRE(synchronous.SetView(test::ViewOf(1)).ok());
  CHECK(absl::IsInvalidArgument(synchronous.CreateVariables(plan).status()));
}

TEST_CASE("a bound on staleness belongs to an asynchronous job and is not negative") {
  for (const bool asynchronous : {false, true}) {
    CreateVariablesRequest plan = AsyncPlan(1, asynchronous ? -1 : 1);
    plan.set_asynchronous(asynchronous);
    Shard shard({});
    REQUIRE(shard.SetView(test::ViewOf(1)).ok());
    CHECK(absl::IsInvalidArgument(shard.CreateVariables(plan).status()));
  }
}

}  // namespace
}  // namespace lockstep::ps
