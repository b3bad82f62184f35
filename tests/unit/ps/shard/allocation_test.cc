// What a step allocates once the first ones are over.
#include <catch2/catch.hpp>
#include <memory>
#include <vector>

#include "tests/support/allocation_counter.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps::test {
namespace {

using lockstep::test::Allocations;
using lockstep::test::AllocationsOf;
using lockstep::test::kLargeAllocation;

constexpr uint32_t kWorkers = 2;
constexpr uint32_t kVariables = 8;
constexpr int64_t kElements = kLargeAllocation / sizeof(float);

// Steps of a shard whose workers send all variables in one message each, made beforehand.
class Steps {
 public:
  // Where the gradients lie in memory that workers and shard share, the values do, too.
  explicit Steps(bool in_memory) : ps_(Plan(in_memory), Options(in_memory)) {
    gradient_ = std::make_shared<Tensor>(Tensor::Zeros(DType::kFloat32, Shape({kElements})));
    for (uint32_t worker = 0; worker < kWorkers; ++worker) {
      PushOrder& push = pushes_.emplace_back();
      PullOrder& pull = pulls_.emplace_back();
      push.worker = pull.worker = IdentityOf(worker);
      pull.in_memory = in_memory;
      if (in_memory) push.memory = gradient_;
      for (uint32_t v = 0; v < kVariables; ++v) {
        push.pieces.push_back({VariableId(v), DType::kFloat32, Shape({kElements}), 0,
                               static_cast<uint64_t>(kElements) * sizeof(float)});
        push.payload.push_back(gradient_->view().bytes());
        pull.pieces.push_back({VariableId(v)});
      }
      if (in_memory) push.in_place = push.payload;
    }
  }

  void Run() {
    ps_.shard.Grant({.command = kCommand,
                     .step = GlobalStep(step_),
                     .required = kWorkers,
                     .learning_rate = 1,
                     .commit = true},
                    [this](const absl::StatusOr<ClosedStep>& closed) { closed_ += closed.ok(); });
    for (PullOrder& pull : pulls_) {
      pull.version = GlobalStep(step_ + 1);
      ps_.shard.Pull(pull, [this](const absl::StatusOr<PullResult>& result) {
        pulled_ += result.ok() ? static_cast<int>(result->pieces.size()) : 0;
      });
    }
    for (PushOrder& push : pushes_) {
      push.push_seq = PushSeq(static_cast<uint64_t>(step_) + 1);
      push.local_step = GlobalStep(step_);
      accepted_ += ps_.shard.Push(push)->verdicts.front() == Verdict::kAccepted;
    }
    ++step_;
  }
  bool AllWell() const {
    return closed_ == step_ && accepted_ == step_ * kWorkers &&
           pulled_ == step_ * kWorkers * kVariables;
  }

 private:
  static VariablePlan Plan(bool in_memory) {
    std::vector<SpecText> specs;
    for (uint32_t v = 0; v < kVariables; ++v) specs.push_back({absl::StrCat("v", v), {kElements}});
    VariablePlan plan = PlanOf(PlacementOf(specs), kWorkers, kWorkers);
    plan.optimizer.mutable_momentum()->set_momentum(0.9f);
    plan.shared_memory = in_memory;
    return plan;
  }
  static ShardOptions Options(bool in_memory) {
    if (!in_memory) return {};
    return {.make_value_memory = [](uint64_t bytes) -> std::optional<ValueMemory> {
      auto memory = std::make_shared<Tensor>(
          Tensor::Zeros(DType::kUInt8, Shape({static_cast<int64_t>(bytes)})));
      return ValueMemory{memory->view().bytes(), memory};
    }};
  }

  Harness ps_;
  std::shared_ptr<Tensor> gradient_;
  std::vector<PushOrder> pushes_;
  std::vector<PullOrder> pulls_;
  int64_t step_ = 0;
  int64_t closed_ = 0;
  int64_t accepted_ = 0;
  int64_t pulled_ = 0;
};

TEST_CASE("a step allocates nothing of a variable's size, and little else") {
  // Per variable and worker: what is noted of a gradient on its way, and the answers.
  constexpr int64_t kPerGradient = 8;
  constexpr int64_t kSteps = 20;
  for (const bool in_memory : {false, true}) {
    CAPTURE(in_memory);
    Steps steps(in_memory);
    for (int i = 0; i < 3; ++i) steps.Run();
    const Allocations made = AllocationsOf([&] {
      for (int i = 0; i < kSteps; ++i) steps.Run();
    });
    REQUIRE(steps.AllWell());
    CHECK(made.large == 0);
    CAPTURE(made.all / kSteps);
    CHECK(made.all <= kPerGradient * kSteps * kVariables * kWorkers);
  }
}

TEST_CASE("the counter sees tensors") {
  CHECK(AllocationsOf([] { Tensor tensor(DType::kFloat32, Shape({kElements})); }).large == 1);
  CHECK(AllocationsOf([] { Tensor tensor(DType::kFloat32, Shape({1 << 20})); }).large == 1);
  CHECK(AllocationsOf([] { Tensor tensor(DType::kFloat32, Shape({1})); }).all == 1);
}

}  // namespace
}  // namespace lockstep::ps::test
