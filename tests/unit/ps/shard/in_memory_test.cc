// Gradients that stay where the worker wrote them, and values that others look at.
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
#include "common/tensor/stamp.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps::test {
namespace {

// Memory as of a worker, which knows whether the shard still has it.
class Gradients {
 public:
  explicit Gradients(std::vector<float> values) {
    const auto size = static_cast<int64_t>(values.size());
    auto memory = std::make_shared<Tensor>(DType::kFloat32, Shape({size + 16}));
    data_ = memory->as<float>().data();
    std::memcpy(data_, values.data(), values.size() * sizeof(float));
    size_ = values.size();
    seen_ = memory;
    memory_ = std::move(memory);
  }

  // Of one variable, whole unless it says otherwise.
  absl::StatusOr<PushResult> Push(Shard* shard, uint32_t worker, uint64_t push_seq, int64_t stamp,
                                  uint64_t offset = 0, uint64_t size = 0, size_t shift = 0) {
    PushOrder order;
    order.worker = IdentityOf(worker);
    order.push_seq = PushSeq(push_seq);
    order.local_step = GlobalStep(stamp);
    if (size == 0) size = size_ * sizeof(float);
    order.pieces.push_back(
        {VariableId(0), DType::kFloat32, Shape({static_cast<int64_t>(size_)}), offset, size});
    const std::span<const float> all(data_ + shift, size_);
    order.payload = {std::as_bytes(all).subspan(offset, size)};
    order.memory = memory_;
    return shard->Push(order);
  }
  float& operator[](size_t i) { return data_[i]; }
  // The worker is gone.
  void LetGo() { memory_.reset(); }
  bool IsHeld() const { return !seen_.expired() && memory_ == nullptr; }

 private:
  std::shared_ptr<const void> memory_;
  std::weak_ptr<const void> seen_;
  float* data_ = nullptr;
  size_t size_ = 0;
};

VariablePlan Vector(uint32_t total, uint32_t aggregate, TokenPolicy policy = PER_REPLICA) {
  return PlanOf(PlacementOf({{"w", {4}}}), total, aggregate, policy);
}

TEST_CASE(
    "A gradient in memory is held where it is, costs no budget, and is let go when its step "
    "closes") {
  Harness ps(Vector(2, 2));
  Gradients first({1, 2, 3, 4}), second({3, 2, 1, 0});
  REQUIRE(first.Push(&ps.shard, 0, 1, 0)->verdicts[0] == Verdict::kAccepted);
  CHECK(ps.shard.Report().held_bytes == 0);
  first.LetGo();
  CHECK(first.IsHeld());
  first[0] = 5;  // nothing was copied
  const auto closed = ps.Grant(0, 2);
  REQUIRE(second.Push(&ps.shard, 1, 1, 0)->verdicts[0] == Verdict::kAccepted);
  second.LetGo();
  REQUIRE_FALSE(closed.IsParked());
  CHECK_FALSE(first.IsHeld());
  CHECK_FALSE(second.IsHeld());
  CHECK(ps.Read(1, 0) == std::vector<float>{-4, -2, -2, -2});
}

TEST_CASE("A repeated push of what is held in place changes nothing") {
  Harness ps(Vector(2, 2));
  Gradients gradients({1, 2, 3, 4});
  for (int time = 0; time < 3; ++time) {
    CHECK(gradients.Push(&ps.shard, 0, 1, 0)->verdicts[0] == Verdict::kAccepted);
  }
  CHECK(ps.shard.Report().duplicates == 2);
  CHECK(ps.shard.Report().accepted == 1);
  // As bytes, too.
  CHECK(ps.Push(0, 1, 0, 0, {9, 9, 9, 9}) == Verdict::kAccepted);
}

TEST_CASE("What comes from memory in pieces, off the grid or under a queue of tokens is copied") {
  const auto check = [](const VariablePlan& plan,
                        const std::function<void(Shard*, Gradients*)>& push) {
    Harness ps(plan);
    Gradients gradients({1, 2, 3, 4, 5, 6, 7, 8});
    const auto closed = ps.Grant(0, 1);
    push(&ps.shard, &gradients);
    gradients.LetGo();
    CHECK_FALSE(gradients.IsHeld());
    REQUIRE_FALSE(closed.IsParked());
    return ps.Read(1, 0);
  };
  const VariablePlan eight = PlanOf(PlacementOf({{"w", {8}}}), 1, 1);
  CHECK(check(eight, [](Shard* shard, Gradients* gradients) {
          CHECK(gradients->Push(shard, 0, 1, 0, 16, 16)->verdicts[0] == Verdict::kPending);
          CHECK(gradients->Push(shard, 0, 1, 0, 0, 16)->verdicts[0] == Verdict::kAccepted);
        }) == std::vector<float>{-1, -2, -3, -4, -5, -6, -7, -8});
  CHECK(check(eight, [](Shard* shard, Gradients* gradients) {
          (*gradients)[8] = 9;
          CHECK(gradients->Push(shard, 0, 1, 0, 0, 0, 1)->verdicts[0] == Verdict::kAccepted);
        }) == std::vector<float>{-2, -3, -4, -5, -6, -7, -8, -9});

  Harness queue(Vector(2, 2, FIFO));
  Gradients gradients({1, 2, 3, 4});
  CHECK(gradients.Push(&queue.shard, 0, 1, 0)->verdicts[0] == Verdict::kAccepted);
  CHECK(queue.shard.Report().held_bytes == 16);
  gradients.LetGo();
  CHECK_FALSE(gradients.IsHeld());
}

TEST_CASE("Chunks that came as bytes are completed from memory") {
  Harness ps(Vector(1, 1));
  const auto closed = ps.Grant(0, 1);
  const std::vector<float> values = {1, 2, 3, 4};
  REQUIRE(
      ps.shard.Push(Message(IdentityOf(0), 1, 0).Chunk(0, Shape({4}), values, 0, 4).Ready()).ok());
  Gradients gradients({9, 2, 3, 4});
  CHECK(gradients.Push(&ps.shard, 0, 1, 0)->verdicts[0] == Verdict::kAccepted);
  CHECK(ps.Read(1, 0) == std::vector<float>{-1, -2, -3, -4});
}

TEST_CASE("A stale gradient in memory is let go at once") {
  Harness ps(Vector(2, 1));
  ps.Grant(0, 1);
  Gradients fresh({1, 1, 1, 1}), late({2, 2, 2, 2});
  REQUIRE(fresh.Push(&ps.shard, 0, 1, 0)->verdicts[0] == Verdict::kAccepted);
  CHECK(late.Push(&ps.shard, 1, 1, 0)->verdicts[0] == Verdict::kStale);
  late.LetGo();
  CHECK_FALSE(late.IsHeld());
}

TEST_CASE("The gradient of a worker that has died counts, and its memory stays until then") {
  Harness ps(Vector(2, 2));
  Gradients first({1, 2, 3, 4});
  REQUIRE(first.Push(&ps.shard, 0, 1, 0).ok());
  first.LetGo();
  View view = ViewOf(2);
  view.members[0].incarnation = Incarnation(999);
  REQUIRE(ps.shard.SetView(view).ok());
  CHECK(first.IsHeld());
  ps.Grant(0, 2);
  CHECK(ps.Push(1, 1, 0, 0, {1, 2, 3, 4}) == Verdict::kAccepted);
  CHECK_FALSE(first.IsHeld());
  CHECK(ps.Read(1, 0, 1) == std::vector<float>{-1, -2, -3, -4});
}

TEST_CASE("Another epoch lets go of what is held in place") {
  Harness ps(Vector(2, 2));
  Gradients gradients({1, 2, 3, 4});
  REQUIRE(gradients.Push(&ps.shard, 0, 1, 0).ok());
  gradients.LetGo();
  View view = ViewOf(2);
  view.epoch = Epoch(2);
  REQUIRE(ps.shard.SetView(view).ok());
  CHECK_FALSE(gradients.IsHeld());
}

TEST_CASE("Sparse gradients and values that are no numbers are refused from memory, too") {
  Harness sparse(PlanOf(PlacementOf({{.name = "t", .dims = {4}, .sparse = true}}), 1, 1));
  Gradients gradients({1, 2, 3, 4});
  const absl::Status refused = gradients.Push(&sparse.shard, 0, 1, 0).status();
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(absl::StrContains(refused.message(), "\"t\""));
  VariablePlan plan = Vector(1, 1);
  plan.refuse_non_finite = true;
  Harness strict(plan);
  gradients[2] = std::numeric_limits<float>::infinity();
  CHECK(absl::IsInvalidArgument(gradients.Push(&strict.shard, 0, 1, 0).status()));
  gradients.LetGo();
  CHECK_FALSE(gradients.IsHeld());
}

// A shard with its values in memory that the test sees.
class Shown {
 public:
  explicit Shown(VariablePlan plan) {
    plan.shared_memory = true;
    ps_ = std::make_unique<Harness>(plan, Options());
  }
  Harness* operator->() { return ps_.get(); }

  Reply<PullResult> Pull(int64_t version, std::vector<PullPiece> pieces) {
    Reply<PullResult> reply;
    ps_->shard.Pull({.worker = IdentityOf(0),
                     .version = GlobalStep(version),
                     .pieces = std::move(pieces),
                     .in_memory = true},
                    reply.done());
    return reply;
  }
  std::vector<float> At(const PulledPiece& piece) const {
    std::vector<float> values(piece.size / sizeof(float));
    std::memcpy(values.data(), memory_.data() + piece.place, piece.size);
    return values;
  }
  bool StillHolds(const PulledPiece& piece, int64_t version) const {
    return reinterpret_cast<const Stamp*>(memory_.data() + piece.stamp)->StillHolds(version);
  }
  void CloseStep(int64_t step, float gradient, bool keep = false) {
    const auto closed = ps_->Grant({.command = kCommand,
                                    .step = GlobalStep(step),
                                    .required = 1,
                                    .learning_rate = 1,
                                    .keep_values = keep});
    REQUIRE(ps_->Push(0, static_cast<uint64_t>(step) + 1, step, 0,
                      std::vector<float>(4, gradient)) == Verdict::kAccepted);
    REQUIRE_FALSE(closed.IsParked());
  }

 private:
  ShardOptions Options() {
    return {.make_value_memory = [this](uint64_t bytes) -> std::optional<ValueMemory> {
      auto memory = std::make_shared<Tensor>(
          Tensor::Zeros(DType::kUInt8, Shape({static_cast<int64_t>(bytes)})));
      memory_ = memory->view().bytes();
      return ValueMemory{memory_, memory};
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
  REQUIRE(first->in_memory);
  CHECK(ps.At(first->pieces[0]) == std::vector<float>(4, 8));
  CHECK(first->pieces[0].owner == nullptr);
  const auto part = ps.Pull(0, {{VariableId(0), 8, 4}});
  CHECK(part->pieces[0].place == first->pieces[0].place + 8);
  CHECK(part->pieces[0].stamp == first->pieces[0].stamp);
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
  Shown ps(Vector(1, 1));
  const auto reply = ps->Pull(0, 0, {{VariableId(0)}});
  CHECK_FALSE(reply->in_memory);
  CHECK(reply->pieces[0].owner != nullptr);
}

TEST_CASE(
    "A kept version stays in memory; with too many kept, values come as bytes until there is "
    "room") {
  Shown ps(Vector(1, 1));
  for (int64_t step = 0; step < 4; ++step) ps.CloseStep(step, 1, /*keep=*/true);
  const auto kept = ps.Pull(1, {{VariableId(0)}});
  REQUIRE(kept->in_memory);
  CHECK(ps.At(kept->pieces[0]) == std::vector<float>(4, -1));
  CHECK(ps.StillHolds(kept->pieces[0], 1));
  const auto newest = ps.Pull(4, {{VariableId(0)}});
  CHECK_FALSE(newest->in_memory);
  CHECK(ValuesOf(newest->pieces[0]) == std::vector<float>(4, -4));
  for (const int64_t version : {1, 2, 3, 4}) {
    REQUIRE(ps->shard.ReleaseSnapshot(kCommand, GlobalStep(version)).ok());
  }
  ps.CloseStep(4, 1);
  CHECK(ps.Pull(5, {{VariableId(0)}})->in_memory);
}

TEST_CASE("A frozen variable has every version in one place, and a table its newest") {
  Shown ps(PlanOf(PlacementOf({{.name = "w", .dims = {4}},
                               {.name = "f", .dims = {2}, .initial = 3, .frozen = true},
                               {.name = "t", .dims = {5}, .sparse = true}}),
                  1, 1));
  const auto before = ps.Pull(0, {{VariableId(1)}});
  REQUIRE(before->in_memory);
  const auto table = ps.Pull(0, {{VariableId(2), 4, 12}, {VariableId(0)}});
  REQUIRE(table->in_memory);
  CHECK(ps.At(table->pieces[0]) == std::vector<float>(3, 0));
  const auto rows = ps.Pull(0, {{VariableId(2), 0, 0, {3, 1, 1}}});
  REQUIRE(rows->in_memory);
  CHECK(rows->pieces[0].place + 4 == table->pieces[0].place);  // of the first row of all
  CHECK(rows->pieces[0].size == 12);
  const auto closed = ps->Grant(0, 1);
  ps->Push(0, 1, 0, 0, {1, 1, 1, 1});
  REQUIRE(
      ps->shard.Push(Message(IdentityOf(0), 1, 0).Rows(2, Shape({5}), {1}, {1.f}).Ready()).ok());
  REQUIRE_FALSE(closed.IsParked());
  const auto after = ps.Pull(1, {{VariableId(1)}, {VariableId(0)}});
  REQUIRE(after->in_memory);
  CHECK(after->pieces[0].place == before->pieces[0].place);
  CHECK(ps.StillHolds(after->pieces[0], 1));
  CHECK(ps.At(after->pieces[0]) == std::vector<float>(2, 3));
  CHECK_FALSE(ps.StillHolds(rows->pieces[0], 0));
  const auto newest = ps.Pull(1, {{VariableId(2)}});
  REQUIRE(newest->in_memory);
  CHECK(newest->pieces[0].place == rows->pieces[0].place);
  CHECK(ps.At(newest->pieces[0]) == std::vector<float>{0, -1, 0, 0, 0});
  // The version before it comes as bytes.
  const auto before_that = ps.Pull(0, {{VariableId(2), 0, 0, {1, 2}}, {VariableId(2), 2, 8}});
  REQUIRE_FALSE(before_that->in_memory);
  CHECK(ValuesOf(before_that->pieces[0]) == std::vector<float>{0, 0});
  CHECK(before_that->pieces[1].bytes.size() == 8);
}

TEST_CASE("A table that the rule changes everywhere is not in memory, and reads as any other") {
  VariablePlan plan = PlanOf(PlacementOf({{.name = "t", .dims = {5}, .sparse = true}}), 1, 1);
  plan.optimizer.mutable_adam();
  Shown ps(plan);
  const auto all = ps.Pull(0, {{VariableId(0)}});
  REQUIRE_FALSE(all->in_memory);
  CHECK(ValuesOf(all->pieces[0]) == std::vector<float>(5, 0));
  CHECK(ValuesOf(ps.Pull(0, {{VariableId(0), 0, 0, {4, 4}}})->pieces[0]) ==
        std::vector<float>(2, 0));
}

TEST_CASE("An asynchronous variable that has run ahead of the others comes as bytes") {
  VariablePlan plan = PlanOf(PlacementOf({{"a", {1}}, {"b", {1}}}), 1, 1);
  plan.asynchronous = true;
  plan.optimizer.mutable_learning_rate()->set_base(1);
  Shown ps(plan);
  CHECK(ps.Pull(0, {{VariableId(0)}, {VariableId(1)}})->in_memory);
  REQUIRE(ps->Push(0, 1, 0, 0, {1}) == Verdict::kAccepted);
  const auto mixed = ps.Pull(0, {{VariableId(0)}, {VariableId(1)}});
  CHECK_FALSE(mixed->in_memory);
  CHECK(ValuesOf(mixed->pieces[0]) == std::vector<float>{-1});
  REQUIRE(ps->Push(0, 1, 0, 1, {1}) == Verdict::kAccepted);
  CHECK(ps.Pull(0, {{VariableId(0)}, {VariableId(1)}})->in_memory);
}

}  // namespace
}  // namespace lockstep::ps::test
