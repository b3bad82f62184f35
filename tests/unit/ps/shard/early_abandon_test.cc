// A worker leaves between the two halves of another one's push, which had made a chunk ready.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "common/update/dense_update.h"
#include "tests/unit/ps/shard/watched_payload.h"

namespace lockstep::ps {
namespace {

using test::IdentityOf;
using test::Message;

constexpr uint64_t kChunk = DenseUpdate::kRangeBytes;
constexpr int64_t kDenseSize = 3 * kChunk / sizeof(float);
constexpr Incarnation kSuccessor(777);

CreateVariablesRequest PlanOfTwo() {
  CreateVariablesRequest plan = test::PlanOf(
      test::PlacementOf({{"w", {kDenseSize}}, {.name = "t", .dims = {4, 1}, .sparse = true}}), 2,
      2);
  plan.set_every_replica_counts(true);
  return plan;
}

// Bytes [begin, end) of a gradient of "w" whose elements are all `value`.
Message PartOfW(const WorkerIdentity& worker, uint64_t push_seq, float value, uint64_t begin,
                uint64_t end) {
  Message part(worker, push_seq, 0);
  part.Chunk(0, Shape({kDenseSize}), std::vector<float>(kDenseSize, value), begin, end - begin);
  return part;
}

// All of both gradients, in the worker's memory: the shard counts "w" where it lies, and copies the
// row index of "t" without the lock.
class WholeInMemory {
 public:
  WholeInMemory(uint64_t push_seq, float value)
      : dense_(std::make_shared<Tensor>(DType::kFloat32, Shape({kDenseSize}))),
        row_(std::make_shared<Tensor>(DType::kFloat32, Shape({1, 1}))) {
    std::ranges::fill(dense_->as<float>(), value);
    row_->as<float>()[0] = value;
    const std::span<const std::byte> w = std::as_const(*dense_).view().bytes();
    const std::span<const std::byte> t = std::as_const(*row_).view().bytes();
    arguments_.worker = IdentityOf(0);
    arguments_.push_seq = PushSeq(push_seq);
    arguments_.pieces = {
        {VariableId(0), DType::kFloat32, Shape({kDenseSize}), 0, w.size()},
        {VariableId(1), DType::kFloat32, Shape({4, 1}), 0, sizeof(index_) + t.size(), 1}};
    arguments_.tensors =
        test::Borrowed({w, std::as_bytes(std::span(&index_, 1)), t}, {w, t}, dense_);
  }

  const PushArguments& arguments() const { return arguments_; }

 private:
  const std::shared_ptr<Tensor> dense_;
  const std::shared_ptr<Tensor> row_;
  const int64_t index_ = 2;
  PushArguments arguments_;
};

TEST_CASE("a chunk that a worker takes back with its membership is made of its successor's") {
  const bool is_chunk_first = GENERATE(false, true);
  test::Harness ps(PlanOfTwo());
  const auto grant = ps.Grant(0, 2);
  WorkerIdentity successor = IdentityOf(1);
  successor.incarnation = kSuccessor;
  // Worker 0 gives up its first push with its second one. When the shard lets the first one go, the
  // second one has made chunk 0 ready, and has yet to copy what it brings of "t".
  bool has_left = false;
  REQUIRE(ps.shard
              .Push(test::Watched(
                  PartOfW(IdentityOf(0), 1, 2, 2 * kChunk, 3 * kChunk),
                  [&] {
                    has_left = true;
                    View view = test::ViewOf(2);
                    view.members[1].incarnation = kSuccessor;
                    REQUIRE(ps.shard.SetView(view).ok());
                    if (!is_chunk_first) return;
                    REQUIRE(ps.shard.Push(PartOfW(successor, 1, 4, 0, kChunk).Kept()).ok());
                  }))
              .ok());
  REQUIRE(ps.shard.Push(PartOfW(IdentityOf(1), 1, 100, 0, kChunk).Kept()).ok());
  REQUIRE_FALSE(has_left);
  const WholeInMemory whole(2, 2);
  const auto pushed = ps.shard.Push(whole.arguments());
  REQUIRE(has_left);
  REQUIRE(pushed.ok());
  CHECK(pushed->statuses == std::vector{PushStatus::kAccepted, PushStatus::kAccepted});

  const auto part = ps.Pull(0, 1, {{VariableId(0), 0, kChunk}});
  CHECK(part.IsParked() != is_chunk_first);
  REQUIRE(ps.shard.Push(PartOfW(successor, 1, 4, 0, 3 * kChunk).Kept()).ok());
  CHECK_FALSE(part.IsParked());
  REQUIRE(ps.shard.Push(Message(successor, 1, 0).Rows(1, Shape({4, 1}), {2}, {4}).Ready()).ok());
  REQUIRE_FALSE(grant.IsParked());
  CHECK(ps.Read(1, 0) == std::vector<float>(kDenseSize, -3));
}

}  // namespace
}  // namespace lockstep::ps
