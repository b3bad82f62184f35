// What pulling the variables and pushing the gradients of a step allocates on a worker.
#include <catch2/catch.hpp>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/allocation_counter.h"
#include "tests/support/bytes_transport.h"
#include "tests/support/made_tensors.h"
#include "tests/support/placed_variable.h"
#include "tests/support/thread_timer.h"
#include "worker/strategy/parameter_server/asynchronous_strategy.h"
#include "worker/strategy/parameter_server/parameter_server_strategy.h"

namespace lockstep::worker {
namespace {

using lockstep::test::Allocations;
using lockstep::test::AllocationsOf;
using lockstep::test::kLargeAllocation;

constexpr uint32_t kVariables = 8;
constexpr int64_t kElements = 2 * kLargeAllocation / sizeof(float);

// Answers at once, on the caller's thread; allocates no more than the answers.
class WillingPs final : public test::BytesTransport {
 public:
  void Cancel() override {}
  void Start(const CallOptions&, google::protobuf::Message* header,
             const std::vector<OutgoingTensor>&, google::protobuf::Message* reply,
             Callback<ReceivedTensors> done) override {
    if (const auto* const push = dynamic_cast<const PushRequest*>(header)) {
      test::AcceptPush(*push, &dynamic_cast<PushReply&>(*reply));
      return done(ReceivedTensors());
    }
    if (const auto* const dequeue = dynamic_cast<const DequeueTokenRequest*>(header)) {
      dynamic_cast<DequeueTokenReply&>(*reply).set_step(
          static_cast<int64_t>(dequeue->dequeue_seq()));
      return done(ReceivedTensors());
    }
    static const std::vector<std::byte> zeros(kElements * sizeof(float));
    done(test::AnswerPull(dynamic_cast<const PullRequest&>(*header), zeros,
                          &dynamic_cast<PullReply&>(*reply)));
  }
};

TEST_CASE("pulling and pushing allocate nothing of a variable's size, and little for a message") {
  constexpr int64_t kSteps = 20;
  // A variable is a message each way: the request and the answer, what is kept of the call.
  constexpr int64_t kPerVariable = 21;
  Placement placement;
  placement.set_shards(1);
  for (uint32_t v = 0; v < kVariables; ++v) {
    *placement.add_variables() = PlacedVariable(v, absl::StrCat("v", v), kElements, 0, true, 0);
  }
  const VariableLayout layout = *VariableLayout::Create(placement);
  WillingPs ps;
  TensorTransport* const shards[] = {&ps};
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

TEST_CASE("gradients that are not shared are in memory of the maker") {
  Placement placement;
  placement.set_shards(1);
  *placement.add_variables() = PlacedVariable(0, "v", kElements, 0, true, 0);
  const VariableLayout layout = *VariableLayout::Create(placement);
  WillingPs ps;
  TensorTransport* const shards[] = {&ps};
  const std::vector<int64_t> most_rows(1);
  ShardGroupOptions options;
  options.shard_names = {"ps"};
  ThreadTimer timer;
  const lockstep::test::MadeTensors made;
  const ShardGroupResources resources{
      .shards = shards, .timer = &timer, .make_tensor = made.maker()};
  std::unique_ptr<UpdateStrategy> strategy;
  SECTION("with parameter servers") {
    strategy = *ParameterServerStrategy::Create({.shards = options}, layout, resources, most_rows,
                                                nullptr);
  }
  SECTION("in an asynchronous job") {
    options.session.asynchronous = true;
    strategy = *AsynchronousStrategy::Create(options, layout, resources, most_rows, nullptr);
  }
  const std::vector<std::span<const int64_t>> no_rows(1);
  bool is_told = false;
  strategy->BeginStep({GlobalStep(0), no_rows}, [&](absl::StatusOr<StepValues> values) {
    is_told = true;
    REQUIRE(values.ok());
    CHECK(made.Has(values->gradients[0].data));
  });
  CHECK(is_told);
  strategy->Cancel();
}

}  // namespace
}  // namespace lockstep::worker
