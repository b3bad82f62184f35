// Gradients that stay where the worker wrote them.
#include <catch2/catch.hpp>
#include <cstring>
#include <functional>
#include <limits>
#include <memory>
#include <vector>

#include "absl/strings/match.h"
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
    PushArguments arguments;
    arguments.worker = IdentityOf(worker);
    arguments.push_seq = PushSeq(push_seq);
    arguments.local_step = GlobalStep(stamp);
    if (size == 0) size = size_ * sizeof(float);
    arguments.pieces.push_back(
        {VariableId(0), DType::kFloat32, Shape({static_cast<int64_t>(size_)}), offset, size});
    const std::span<const float> all(data_ + shift, size_);
    arguments.tensors = Borrowed({std::as_bytes(all).subspan(offset, size)}, memory_);
    return shard->Push(arguments);
  }
  // Of one table of four rows: the slices of these.
  absl::StatusOr<PushResult> PushRows(Shard* shard, uint32_t worker, uint64_t push_seq,
                                      int64_t stamp, const std::vector<int64_t>& rows,
                                      size_t shift = 0) {
    PushArguments arguments;
    arguments.worker = IdentityOf(worker);
    arguments.push_seq = PushSeq(push_seq);
    arguments.local_step = GlobalStep(stamp);
    const auto indices = std::as_bytes(std::span(rows));
    const auto width = static_cast<int64_t>(size_ / rows.size());
    const std::span<const std::byte> values = std::as_bytes(std::span(data_ + shift, size_));
    // The indices cut somewhere.
    arguments.tensors = Borrowed({indices.first(8), indices.subspan(8), values}, {values}, memory_);
    arguments.pieces.push_back({VariableId(0), DType::kFloat32, Shape({4, width}), 0,
                                indices.size() + values.size(), static_cast<int64_t>(rows.size())});
    return shard->Push(arguments);
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

CreateVariablesRequest Vector(uint32_t total, uint32_t aggregate,
                              TokenPolicy policy = PER_REPLICA) {
  return PlanOf(PlacementOf({{"w", {4}}}), total, aggregate, policy);
}

TEST_CASE(
    "A gradient in memory is held where it is, costs no budget, and is let go when its step "
    "closes") {
  Harness ps(Vector(2, 2));
  Gradients first({1, 2, 3, 4}), second({3, 2, 1, 0});
  REQUIRE(first.Push(&ps.shard, 0, 1, 0)->statuses[0] == PushStatus::kAccepted);
  CHECK(ps.shard.Report().held_bytes == 0);
  first.LetGo();
  CHECK(first.IsHeld());
  first[0] = 5;  // nothing was copied
  const auto closed = ps.Grant(0, 2);
  REQUIRE(second.Push(&ps.shard, 1, 1, 0)->statuses[0] == PushStatus::kAccepted);
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
    CHECK(gradients.Push(&ps.shard, 0, 1, 0)->statuses[0] == PushStatus::kAccepted);
  }
  CHECK(ps.shard.Report().duplicates == 2);
  CHECK(ps.shard.Report().accepted == 1);
  // As bytes, too.
  CHECK(ps.Push(0, 1, 0, 0, {9, 9, 9, 9}) == PushStatus::kAccepted);
}

TEST_CASE("What comes from memory in pieces, off the grid or under a queue of tokens is copied") {
  const auto check = [](const CreateVariablesRequest& plan,
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
  const CreateVariablesRequest eight = PlanOf(PlacementOf({{"w", {8}}}), 1, 1);
  CHECK(check(eight, [](Shard* shard, Gradients* gradients) {
          CHECK(gradients->Push(shard, 0, 1, 0, 16, 16)->statuses[0] == PushStatus::kPending);
          CHECK(gradients->Push(shard, 0, 1, 0, 0, 16)->statuses[0] == PushStatus::kAccepted);
        }) == std::vector<float>{-1, -2, -3, -4, -5, -6, -7, -8});
  CHECK(check(eight, [](Shard* shard, Gradients* gradients) {
          (*gradients)[8] = 9;
          CHECK(gradients->Push(shard, 0, 1, 0, 0, 0, 1)->statuses[0] == PushStatus::kAccepted);
        }) == std::vector<float>{-2, -3, -4, -5, -6, -7, -8, -9});

  Harness queue(Vector(2, 2, FIFO));
  Gradients gradients({1, 2, 3, 4});
  CHECK(gradients.Push(&queue.shard, 0, 1, 0)->statuses[0] == PushStatus::kAccepted);
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
  CHECK(gradients.Push(&ps.shard, 0, 1, 0)->statuses[0] == PushStatus::kAccepted);
  CHECK(ps.Read(1, 0) == std::vector<float>{-1, -2, -3, -4});
}

TEST_CASE("A stale gradient in memory is let go at once") {
  Harness ps(Vector(2, 1));
  ps.Grant(0, 1);
  Gradients fresh({1, 1, 1, 1}), late({2, 2, 2, 2});
  REQUIRE(fresh.Push(&ps.shard, 0, 1, 0)->statuses[0] == PushStatus::kAccepted);
  CHECK(late.Push(&ps.shard, 1, 1, 0)->statuses[0] == PushStatus::kStale);
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
  CHECK(ps.Push(1, 1, 0, 0, {1, 2, 3, 4}) == PushStatus::kAccepted);
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
  CreateVariablesRequest plan = Vector(1, 1);
  plan.set_non_finite(REFUSE_NON_FINITE);
  Harness strict(plan);
  gradients[2] = std::numeric_limits<float>::infinity();
  CHECK(absl::IsInvalidArgument(gradients.Push(&strict.shard, 0, 1, 0).status()));
  gradients.LetGo();
  CHECK_FALSE(gradients.IsHeld());
}

TEST_CASE("Slices of rows in memory are held where they are, with rows of the shard's own") {
  const CreateVariablesRequest plan =
      PlanOf(PlacementOf({{.name = "t", .dims = {4, 2}, .sparse = true}}), 2, 2);
  Harness ps(plan);
  Gradients first({1, 2, 3, 4}), second({5, 6, 7, 8});
  std::vector<int64_t> rows = {0, 3};
  REQUIRE(first.PushRows(&ps.shard, 0, 1, 0, rows)->statuses[0] == PushStatus::kAccepted);
  CHECK(ps.shard.Report().held_bytes == 0);
  rows = {7, 7};  // the shard has looked
  first.LetGo();
  CHECK(first.IsHeld());
  first[0] = 9;  // nothing was copied
  const auto closed = ps.Grant(0, 2);
  REQUIRE(second.PushRows(&ps.shard, 1, 1, 0, {1, 3})->statuses[0] == PushStatus::kAccepted);
  REQUIRE_FALSE(closed.IsParked());
  CHECK_FALSE(first.IsHeld());
  CHECK(ps.Read(1, 0) == std::vector<float>{-9, -2, -5, -6, 0, 0, -5, -6});
}

TEST_CASE("Slices of rows in memory that lie off the grid are copied, in any order") {
  Harness ps(PlanOf(PlacementOf({{.name = "t", .dims = {4, 2}, .sparse = true}}), 1, 1));
  Gradients gradients({0, 1, 2, 3});
  gradients[4] = 4;
  const auto closed = ps.Grant(0, 1);
  REQUIRE(gradients.PushRows(&ps.shard, 0, 1, 0, {2, 0}, /*shift=*/1)->statuses[0] ==
          PushStatus::kAccepted);
  gradients.LetGo();
  CHECK_FALSE(gradients.IsHeld());
  REQUIRE_FALSE(closed.IsParked());
  CHECK(ps.Read(1, 0) == std::vector<float>{-3, -4, 0, 0, -1, -2, 0, 0});
}

TEST_CASE("Rows that a table has not are refused from memory, too") {
  Harness ps(PlanOf(PlacementOf({{.name = "t", .dims = {4, 2}, .sparse = true}}), 1, 1));
  Gradients gradients({1, 2, 3, 4});
  CHECK(absl::IsInvalidArgument(gradients.PushRows(&ps.shard, 0, 1, 0, {0, 4}).status()));
  CHECK(absl::IsInvalidArgument(gradients.PushRows(&ps.shard, 0, 1, 0, {0, -1}).status()));
  gradients.LetGo();
  CHECK_FALSE(gradients.IsHeld());
}

}  // namespace
}  // namespace lockstep::ps::test
