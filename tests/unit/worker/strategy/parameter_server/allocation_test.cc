// What pulling the variables and pushing the gradients of a step allocates on a worker.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/placed_variable.h"
#include "tests/support/thread_timer.h"
#include "worker/strategy/parameter_server/parameter_server_strategy.h"

namespace lockstep::worker {
namespace {

using lockstep::test::Allocations;
using lockstep::test::AllocationsOf;
using lockstep::test::kLargeAllocation;

constexpr uint32_t kVariables = 8;
constexpr int64_t kElements = 2 * kLargeAllocation / sizeof(float);

class Zeros final : public PulledValues {
 public:
  explicit Zeros(const PullRequest& request) {
    header_.set_version(request.version());
    for (const PullPiece& piece : request.pieces()) *header_.add_pieces() = piece;
  }
  const PullReply& header() const override { return header_; }
  absl::Status CopyTo(std::span<const std::span<std::byte>> targets) const override {
    for (const std::span<std::byte>& target : targets) std::ranges::fill(target, std::byte{0});
    return absl::OkStatus();
  }
  absl::Status WidenTo(DType, std::span<const std::span<float>> targets) const override {
    for (const std::span<float>& target : targets) std::ranges::fill(target, 0.0f);
    return absl::OkStatus();
  }

 private:
  PullReply header_;
};

// Answers at once, on the caller's thread; allocates no more than the answers.
class WillingPs final : public PsData {
 public:
  void Push(const PushRequest& header, std::vector<std::span<const std::byte>>,
            Callback<PushReply> done) override {
    PushReply reply;
    reply.set_shard_step(header.local_step());
    for (int i = 0; i < header.pieces_size(); ++i) reply.add_outcomes()->set_verdict(ACCEPTED);
    done(std::move(reply));
  }
  void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) override {
    done(std::make_unique<Zeros>(request));
  }
  void DequeueToken(const DequeueTokenRequest& request, Callback<DequeueTokenReply> done) override {
    DequeueTokenReply reply;
    reply.set_step(static_cast<int64_t>(request.dequeue_seq()));
    done(std::move(reply));
  }
  void Cancel() override {}
};

TEST_CASE("pulling and pushing allocate nothing of a variable's size, and little for a message") {
  constexpr int64_t kSteps = 20;
  // A variable is a message each way: the request and the answer, what is kept of the call.
  constexpr int64_t kPerVariable = 24;
  Placement placement;
  placement.set_shards(1);
  for (uint32_t v = 0; v < kVariables; ++v) {
    *placement.add_variables() = PlacedVariable(v, absl::StrCat("v", v), kElements, 0, true, 0);
  }
  const VariableLayout layout = *VariableLayout::Create(placement);
  WillingPs ps;
  PsData* const shards[] = {&ps};
  const std::vector<int64_t> most_rows(kVariables);
  ShardGroupOptions options;
  options.shard_names = {"ps"};
  options.token_per_replica = true;
  ThreadTimer timer;
  const auto strategy = *ParameterServerStrategy::Create(
      {.shards = options}, layout, {.shards = shards, .timer = &timer}, most_rows, nullptr);
  const std::vector<std::span<const int64_t>> no_rows(kVariables);
  GlobalStep step(0);
  bool all_well = true;
  const auto run = [&] {
    strategy->BeginStep({step, no_rows}, [&](absl::StatusOr<StepValues> values) {
      all_well &= values.ok() && !values->is_superseded;
    });
    for (int v = kVariables; v-- > 0;) strategy->AddGradients({&v, 1});
    strategy->EndStep(StepInput{.step = step.next()}, [&](absl::StatusOr<StepOutcome> outcome) {
      all_well &= outcome.ok() && outcome->accepted == kVariables;
      step = outcome->next;
    });
  };
  for (int i = 0; i < 3; ++i) run();
  const Allocations made = AllocationsOf([&] {
    for (int i = 0; i < kSteps; ++i) run();
  });
  CHECK(all_well);
  CHECK(made.large == 0);
  CAPTURE(made.all / kSteps);
  CHECK(made.all <= kPerVariable * kSteps * kVariables);
}

}  // namespace
}  // namespace lockstep::worker
