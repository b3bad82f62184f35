// What a step allocates once the first ones are over.
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "common/update/dense_update.h"
#include "ps/shard/copy_on_write.h"
#include "tests/support/allocation_counter.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps::test {
namespace {

using lockstep::test::Allocations;
using lockstep::test::AllocationsOf;
using lockstep::test::kLargeAllocation;

constexpr uint32_t kWorkers = 2;
constexpr uint32_t kVariables = 8;
// Three ranges that can close alone.
constexpr uint64_t kBytes = 3 * DenseUpdate::kRangeBytes;
constexpr auto kElements = static_cast<int64_t>(kBytes / sizeof(float));
static_assert(kBytes >= kLargeAllocation);

// Steps of a shard whose workers send all variables in one message each, made beforehand.
class Steps {
 public:
  // Where gradients are when they have come.
  enum Gradients {
    kCopied,    // in the shard's buffers
    kKept,      // in messages, range by range
    kInMemory,  // in memory that workers and shard share; and the values, too
  };

  explicit Steps(Gradients gradients) : ps_(Plan(gradients), Options(gradients)) {
    const bool by_reference = gradients == kInMemory;
    gradient_ = std::make_shared<Tensor>(Tensor::Zeros(DType::kFloat32, Shape({kElements})));
    for (uint32_t worker = 0; worker < kWorkers; ++worker) {
      PullArguments& pull = pulls_.emplace_back();
      pull.worker = IdentityOf(worker);
      pull.accepts_references = by_reference;
      for (uint32_t v = 0; v < kVariables; ++v) pull.pieces.push_back({VariableId(v)});
    }
    if (by_reference) {
      AddPushes(0, kBytes);
      for (PushArguments& push : pushes_) {
        push.tensors = Borrowed(push.tensors.segments(), gradient_);
      }
      return;
    }
    AddPushes(0, kBytes / 3);
    AddPushes(kBytes / 3, kBytes);
    if (gradients == kCopied) return;
    for (PushArguments& push : pushes_) {
      push.tensors = ReceivedTensors(
          std::make_shared<const ReceivedTensors::Segments>(push.tensors.segments()));
    }
  }

  void Run(bool keep_slots = false) {
    ps_.shard.Grant({.command = kCommand,
                     .step = GlobalStep(step_),
                     .required = kWorkers,
                     .learning_rate = 1,
                     .keep_slots = keep_slots,
                     .commit = true},
                    [this](const absl::StatusOr<ClosedStep>& closed) { closed_ += closed.ok(); });
    for (PullArguments& pull : pulls_) {
      pull.version = GlobalStep(step_ + 1);
      ps_.shard.Pull(pull, [this](const absl::StatusOr<PullResult>& result) {
        pulled_ += result.ok() ? static_cast<int>(result->pieces.size()) : 0;
      });
    }
    for (PushArguments& push : pushes_) {
      push.push_seq = PushSeq(static_cast<uint64_t>(step_) + 1);
      push.local_step = GlobalStep(step_);
      accepted_ += ps_.shard.Push(push)->statuses.back() == PushStatus::kAccepted;
    }
    ++step_;
  }
  // Several, while the version that the first one makes is kept as for a checkpoint.
  void RunWhileKept() {
    Run(/*keep_slots=*/true);
    const GlobalStep kept(step_);
    for (int i = 0; i < 3; ++i) Run();
    released_ += ps_.shard.ReleaseSnapshot(kCommand, kept).ok();
  }
  int64_t num_released() const { return released_; }
  int64_t num_pieces() const { return static_cast<int64_t>(pushes_.size()) * kVariables; }
  bool AllWell() const {
    return closed_ == step_ && accepted_ == step_ * kWorkers &&
           pulled_ == step_ * kWorkers * kVariables;
  }

 private:
  // One of each worker, with these bytes of all variables.
  void AddPushes(uint64_t begin, uint64_t end) {
    for (uint32_t worker = 0; worker < kWorkers; ++worker) {
      PushArguments& push = pushes_.emplace_back();
      push.worker = IdentityOf(worker);
      ReceivedTensors::Segments segments;
      for (uint32_t v = 0; v < kVariables; ++v) {
        push.pieces.push_back(
            {VariableId(v), DType::kFloat32, Shape({kElements}), begin, end - begin});
        segments.push_back(std::as_const(*gradient_).view().bytes().subspan(begin, end - begin));
      }
      push.tensors = ReceivedTensors(std::move(segments));
    }
  }

  static CreateVariablesRequest Plan(Gradients gradients) {
    std::vector<SpecText> specs;
    for (uint32_t v = 0; v < kVariables; ++v) specs.push_back({absl::StrCat("v", v), {kElements}});
    CreateVariablesRequest plan = PlanOf(PlacementOf(specs), kWorkers, kWorkers);
    plan.mutable_optimizer()->mutable_momentum()->set_momentum(0.9f);
    plan.set_shared_memory(gradients == kInMemory);
    plan.set_every_replica_counts(gradients == kKept);
    return plan;
  }
  static ShardOptions Options(Gradients gradients) {
    if (gradients != kInMemory) return {};
    return {.make_value_memory = [](uint64_t bytes) -> std::optional<LentMemory> {
      auto memory = std::make_shared<Tensor>(
          Tensor::Zeros(DType::kUInt8, Shape({static_cast<int64_t>(bytes)})));
      return LentMemory{memory->view().bytes(), memory};
    }};
  }

  Harness ps_;
  std::shared_ptr<Tensor> gradient_;
  std::vector<PushArguments> pushes_;
  std::vector<PullArguments> pulls_;
  int64_t step_ = 0;
  int64_t closed_ = 0;
  int64_t accepted_ = 0;
  int64_t pulled_ = 0;
  int64_t released_ = 0;
};

TEST_CASE("a step allocates nothing of a variable's size, and little else") {
  // What is noted of a gradient on its way, and the answers.
  constexpr int64_t kPerPiece = 8;
  constexpr int64_t kSteps = 20;
  for (const auto gradients : {Steps::kCopied, Steps::kKept, Steps::kInMemory}) {
    CAPTURE(static_cast<int>(gradients));
    Steps steps(gradients);
    for (int i = 0; i < 3; ++i) steps.Run();
    const Allocations made = AllocationsOf([&] {
      for (int i = 0; i < kSteps; ++i) steps.Run();
    });
    REQUIRE(steps.AllWell());
    CHECK(made.large == 0);
    CAPTURE(made.all / kSteps);
    CHECK(made.all <= kPerPiece * kSteps * steps.num_pieces());
  }
}

TEST_CASE("steps beside a version that is kept allocate nothing of a variable's size") {
  for (const auto gradients : {Steps::kCopied, Steps::kKept, Steps::kInMemory}) {
    CAPTURE(static_cast<int>(gradients));
    Steps steps(gradients);
    for (int i = 0; i < 2; ++i) steps.RunWhileKept();
    const Allocations made = AllocationsOf([&] {
      for (int i = 0; i < 5; ++i) steps.RunWhileKept();
    });
    REQUIRE(steps.AllWell());
    REQUIRE(steps.num_released() == 7);
    CHECK(made.large == 0);
  }
}

TEST_CASE("a snapshot that is taken before another one is released gets the pages of that one") {
  const auto live = std::make_shared<Tensor>(Tensor::Zeros(DType::kFloat32, Shape({kElements})));
  CopyOnWrite copies(live, DenseUpdate::kRangeBytes);
  auto snapshot = copies.TakeSnapshot();
  copies.BeforeWrite({0, kBytes});
  const Allocations made = AllocationsOf([&] {
    for (int i = 0; i < 5; ++i) {
      auto next = copies.TakeSnapshot();
      copies.TakeSnapshot().reset();  // of a save that was skipped
      snapshot = std::move(next);
      copies.BeforeWrite({0, kBytes / 2});
      copies.BeforeWrite({0, kBytes});
    }
  });
  CHECK(made.large == 0);
}

TEST_CASE("the counter sees tensors") {
  CHECK(AllocationsOf([] { Tensor tensor(DType::kFloat32, Shape({kElements})); }).large == 1);
  CHECK(AllocationsOf([] { Tensor tensor(DType::kFloat32, Shape({1 << 20})); }).large == 1);
  CHECK(AllocationsOf([] { Tensor tensor(DType::kFloat32, Shape({1})); }).all == 1);
}

}  // namespace
}  // namespace lockstep::ps::test
