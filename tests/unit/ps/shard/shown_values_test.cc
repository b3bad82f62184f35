// Values in memory that others look at.
#include <catch2/catch.hpp>
#include <cstring>
#include <memory>
#include <vector>

#include "common/tensor/seq_lock.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps::test {
namespace {

CreateVariablesRequest FourElements() { return PlanOf(PlacementOf({{"w", {4}}}), 1, 1); }

// A shard with its values in memory that the test sees.
class Shown {
 public:
  explicit Shown(CreateVariablesRequest plan) {
    plan.set_shared_memory(true);
    ps_ = std::make_unique<Harness>(plan, Options());
  }
  Harness* operator->() { return ps_.get(); }

  Reply<PullResult> Pull(int64_t version, std::vector<PullPiece> pieces) {
    Reply<PullResult> reply;
    ps_->shard.Pull({.worker = IdentityOf(0),
                     .version = GlobalStep(version),
                     .pieces = std::move(pieces),
                     .accepts_references = true},
                    reply.done());
    return reply;
  }
  std::vector<float> At(const PulledPiece& piece) const {
    std::vector<float> values(piece.size / sizeof(float));
    std::memcpy(values.data(), piece.bytes.data(), piece.size);
    return values;
  }
  bool StillHolds(const PulledPiece& piece, int64_t version) const {
    return piece.seq_lock->StillHolds(version);
  }
  void CloseStep(int64_t step, float gradient, bool keep = false) {
    const auto closed = ps_->Grant({.command = kCommand,
                                    .step = GlobalStep(step),
                                    .required = 1,
                                    .learning_rate = 1,
                                    .keep_values = keep});
    REQUIRE(ps_->Push(0, static_cast<uint64_t>(step) + 1, step, 0,
                      std::vector<float>(4, gradient)) == PushStatus::kAccepted);
    REQUIRE_FALSE(closed.IsParked());
  }

 private:
  ShardOptions Options() {
    return {.make_value_memory = [this](uint64_t bytes) -> std::optional<LentMemory> {
      auto memory = std::make_shared<Tensor>(
          Tensor::Zeros(DType::kUInt8, Shape({static_cast<int64_t>(bytes)})));
      memory_ = memory->view().bytes();
      return LentMemory{memory_, memory};
    }};
  }
  std::span<std::byte> memory_;
  std::unique_ptr<Harness> ps_;
};

TEST_CASE(
    "Values in memory are told as places, whole and in pieces, with a stamp that moves when they "
    "go") {
  Shown ps(PlanOf(PlacementOf({{.name = "w", .dims = {4}, .initial = 8}}), 1, 1));
  const auto first = ps.Pull(0, {{VariableId(0)}});
  REQUIRE(first->by_reference);
  CHECK(ps.At(first->pieces[0]) == std::vector<float>(4, 8));
  CHECK(first->pieces[0].owner == nullptr);
  const auto part = ps.Pull(0, {{VariableId(0), 8, 4}});
  CHECK(part->pieces[0].bytes.data() == first->pieces[0].bytes.data() + 8);
  CHECK(part->pieces[0].seq_lock == first->pieces[0].seq_lock);
  ps.CloseStep(0, 1);
  CHECK(ps.StillHolds(first->pieces[0], 0));  // one behind
  const auto second = ps.Pull(1, {{VariableId(0)}});
  CHECK(ps.At(second->pieces[0]) == std::vector<float>(4, 7));
  ps.CloseStep(1, 1);
  ps.CloseStep(2, 1);
  CHECK_FALSE(ps.StillHolds(first->pieces[0], 0));
  CHECK_FALSE(ps.StillHolds(second->pieces[0], 1));
  const auto now = ps.Pull(3, {{VariableId(0)}});
  CHECK(ps.At(now->pieces[0]) == std::vector<float>(4, 5));
  CHECK(ps.StillHolds(now->pieces[0], 3));
}

TEST_CASE("Whoever does not ask for places gets bytes") {
  Shown ps(FourElements());
  const auto reply = ps->Pull(0, 0, {{VariableId(0)}});
  CHECK_FALSE(reply->by_reference);
  CHECK(reply->pieces[0].owner != nullptr);
}

TEST_CASE(
    "A kept version stays in memory; with too many kept, values come as bytes until there is "
    "room") {
  Shown ps(FourElements());
  for (int64_t step = 0; step < 4; ++step) ps.CloseStep(step, 1, /*keep=*/true);
  const auto kept = ps.Pull(1, {{VariableId(0)}});
  REQUIRE(kept->by_reference);
  CHECK(ps.At(kept->pieces[0]) == std::vector<float>(4, -1));
  CHECK(ps.StillHolds(kept->pieces[0], 1));
  const auto newest = ps.Pull(4, {{VariableId(0)}});
  CHECK_FALSE(newest->by_reference);
  CHECK(ValuesOf(newest->pieces[0]) == std::vector<float>(4, -4));
  for (const int64_t version : {1, 2, 3, 4}) {
    REQUIRE(ps->shard.ReleaseSnapshot(kCommand, GlobalStep(version)).ok());
  }
  ps.CloseStep(4, 1);
  CHECK(ps.Pull(5, {{VariableId(0)}})->by_reference);
}

TEST_CASE("A frozen variable has every version in one place, and a table its newest") {
  Shown ps(PlanOf(PlacementOf({{.name = "w", .dims = {4}},
                               {.name = "f", .dims = {2}, .initial = 3, .frozen = true},
                               {.name = "t", .dims = {5}, .sparse = true}}),
                  1, 1));
  const auto before = ps.Pull(0, {{VariableId(1)}});
  REQUIRE(before->by_reference);
  const auto table = ps.Pull(0, {{VariableId(2), 4, 12}, {VariableId(0)}});
  REQUIRE(table->by_reference);
  CHECK(ps.At(table->pieces[0]) == std::vector<float>(3, 0));
  const auto rows = ps.Pull(0, {{VariableId(2), 0, 0, {3, 1, 1}}});
  REQUIRE(rows->by_reference);
  CHECK(rows->pieces[0].bytes.data() + 4 ==
        table->pieces[0].bytes.data());  // of the first row of all
  CHECK(rows->pieces[0].size == 12);
  const auto closed = ps->Grant(0, 1);
  ps->Push(0, 1, 0, 0, {1, 1, 1, 1});
  REQUIRE(
      ps->shard.Push(Message(IdentityOf(0), 1, 0).Rows(2, Shape({5}), {1}, {1.f}).Ready()).ok());
  REQUIRE_FALSE(closed.IsParked());
  const auto after = ps.Pull(1, {{VariableId(1)}, {VariableId(0)}});
  REQUIRE(after->by_reference);
  CHECK(after->pieces[0].bytes.data() == before->pieces[0].bytes.data());
  CHECK(ps.StillHolds(after->pieces[0], 1));
  CHECK(ps.At(after->pieces[0]) == std::vector<float>(2, 3));
  CHECK_FALSE(ps.StillHolds(rows->pieces[0], 0));
  const auto newest = ps.Pull(1, {{VariableId(2)}});
  REQUIRE(newest->by_reference);
  CHECK(newest->pieces[0].bytes.data() == rows->pieces[0].bytes.data());
  CHECK(ps.At(newest->pieces[0]) == std::vector<float>{0, -1, 0, 0, 0});
  // The version before it comes as bytes.
  const auto before_that = ps.Pull(0, {{VariableId(2), 0, 0, {1, 2}}, {VariableId(2), 2, 8}});
  REQUIRE_FALSE(before_that->by_reference);
  CHECK(ValuesOf(before_that->pieces[0]) == std::vector<float>{0, 0});
  CHECK(before_that->pieces[1].bytes.size() == 8);
}

TEST_CASE("A table that the rule changes everywhere is not in memory, and reads as any other") {
  CreateVariablesRequest plan =
      PlanOf(PlacementOf({{.name = "t", .dims = {5}, .sparse = true}}), 1, 1);
  plan.mutable_optimizer()->mutable_adam();
  Shown ps(plan);
  const auto all = ps.Pull(0, {{VariableId(0)}});
  REQUIRE_FALSE(all->by_reference);
  CHECK(ValuesOf(all->pieces[0]) == std::vector<float>(5, 0));
  CHECK(ValuesOf(ps.Pull(0, {{VariableId(0), 0, 0, {4, 4}}})->pieces[0]) ==
        std::vector<float>(2, 0));
}

TEST_CASE("An asynchronous variable that has run ahead of the others comes as bytes") {
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"a", {1}}, {"b", {1}}}), 1, 1);
  plan.set_asynchronous(true);
  plan.mutable_optimizer()->mutable_learning_rate()->set_base(1);
  Shown ps(plan);
  CHECK(ps.Pull(0, {{VariableId(0)}, {VariableId(1)}})->by_reference);
  REQUIRE(ps->Push(0, 1, 0, 0, {1}) == PushStatus::kAccepted);
  const auto mixed = ps.Pull(0, {{VariableId(0)}, {VariableId(1)}});
  CHECK_FALSE(mixed->by_reference);
  CHECK(ValuesOf(mixed->pieces[0]) == std::vector<float>{-1});
  REQUIRE(ps->Push(0, 1, 0, 1, {1}) == PushStatus::kAccepted);
  CHECK(ps.Pull(0, {{VariableId(0)}, {VariableId(1)}})->by_reference);
}

}  // namespace
}  // namespace lockstep::ps::test
