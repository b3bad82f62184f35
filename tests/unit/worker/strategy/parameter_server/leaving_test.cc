// What a worker that is told to stop still sends: all of the gradient at hand, and none after it.
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/transport/tensor_transport.h"
#include "tests/support/await.h"
#include "tests/support/manual_time.h"
#include "tests/support/placed_variable.h"
#include "worker/strategy/parameter_server/parameter_server_strategy.h"

namespace lockstep::worker {
namespace {

// Answers at once, but pushes when the test says so. After Cancel every call is CANCELLED.
class HeldPs final : public TensorTransport {
 public:
  void Open(const WorkerIdentity&, Callback<TransportInfo> done) override {
    done(TransportInfo{absl::UnavailableError("all travel as bytes")});
  }
  std::string peer() const override { return "ps"; }
  bool MayRound() const override { return true; }
  bool SendsByReference(std::span<const std::byte>) const override { return false; }
  bool ReceivesByReference() const override { return false; }
  void Cancel() override {
    is_cancelled = true;
    if (pending) std::exchange(pending, nullptr)(Cancelled());
  }
  void Start(const CallOptions&, google::protobuf::Message* header,
             const std::vector<OutgoingTensor>&, google::protobuf::Message* reply,
             Callback<ReceivedTensors> done) override {
    if (is_cancelled) return done(Cancelled());
    if (const auto* const push = dynamic_cast<const PushRequest*>(header)) {
      auto& pushed = dynamic_cast<PushReply&>(*reply);
      pushed.set_shard_step(push->local_step());
      for (int i = 0; i < push->pieces_size(); ++i) pushed.add_outcomes()->set_verdict(ACCEPTED);
      ++pushes;
      pending = std::move(done);
      return;
    }
    if (auto* const token = dynamic_cast<DequeueTokenReply*>(reply)) {
      token->set_step(next_token++);
      return done(ReceivedTensors());
    }
    const auto& pull = dynamic_cast<const PullRequest&>(*header);
    auto& values = dynamic_cast<PullReply&>(*reply);
    values.set_version(pull.version());
    auto segments = std::make_shared<ReceivedTensors::Segments>();
    for (const PullPiece& piece : pull.pieces()) {
      *values.add_pieces() = piece;
      segments->push_back(zeros);
    }
    done(ReceivedTensors(std::shared_ptr<const ReceivedTensors::Segments>(std::move(segments))));
  }
  void AnswerPush() { std::exchange(pending, nullptr)(ReceivedTensors()); }

  int pushes = 0;
  int64_t next_token = 1;
  bool is_cancelled = false;
  Callback<ReceivedTensors> pending;
  const std::vector<std::byte> zeros = std::vector<std::byte>(sizeof(float));

 private:
  static absl::Status Cancelled() { return absl::CancelledError("calls were cancelled"); }
};

Placement OneVariableEach() {
  Placement placement;
  placement.set_shards(2);
  for (uint32_t k = 0; k < 2; ++k) {
    *placement.add_variables() = PlacedVariable(k, absl::StrCat("v", k), 1, k, true, 0);
  }
  return placement;
}

// Has begun step 0. Variable k is at ps k.
struct Training {
  Training() {
    ShardGroupOptions options;
    options.shard_names = {"ps 0", "ps 1"};
    strategy = *ParameterServerStrategy::Create({.shards = options}, layout,
                                                {.shards = shards, .timer = &time, .clock = &time},
                                                std::vector<int64_t>(2), nullptr);
    REQUIRE(BeginStep(0).ok());
  }
  absl::Status BeginStep(int64_t step) {
    Answer<StepValues> begun;
    strategy->BeginStep({GlobalStep(step), rows}, begun.done());
    return begun.Wait().status();
  }
  void Add(int variable) { strategy->AddGradients({&variable, 1}); }
  void EndStep() { strategy->EndStep(std::nullopt, ended.done()); }
  // Sends the gradient, which is judged.
  void Finish() {
    Add(1);
    Add(0);
    EndStep();
    for (HeldPs& judge : ps) judge.AnswerPush();
    REQUIRE(ended.Wait().ok());
  }

  const VariableLayout layout = *VariableLayout::Create(OneVariableEach());
  const std::vector<std::span<const int64_t>> rows = std::vector<std::span<const int64_t>>(2);
  HeldPs ps[2];
  std::vector<TensorTransport*> shards = {&ps[0], &ps[1]};
  test::ManualTime time;
  std::unique_ptr<ParameterServerStrategy> strategy;
  Answer<StepOutcome> ended;
};

TEST_CASE("a gradient of which one ps has a part is sent to the others and judged") {
  Training training;
  training.Add(1);
  REQUIRE(training.ps[1].pushes == 1);
  CHECK_FALSE(training.strategy->CancelAfterGradient());
  training.ps[1].AnswerPush();
  training.Add(0);
  training.EndStep();
  CHECK(training.ps[0].pushes == 1);
  CHECK_FALSE(training.strategy->CancelAfterGradient());
  CHECK_FALSE(training.ended.answered());
  training.ps[0].AnswerPush();
  const absl::StatusOr<StepOutcome> outcome = training.ended.Wait();
  REQUIRE(outcome.ok());
  CHECK(outcome->accepted == 2);
  CHECK(training.strategy->CancelAfterGradient());
  CHECK(absl::IsCancelled(training.BeginStep(1)));
}

TEST_CASE("after the gradient at hand no other one begins") {
  Training training;
  CHECK_FALSE(training.strategy->CancelAfterGradient());
  training.Finish();
  // Who waits for the gradient has not looked yet.
  CHECK(absl::IsCancelled(training.BeginStep(1)));
  CHECK(training.ps[0].is_cancelled);
  CHECK(training.strategy->CancelAfterGradient());
}

TEST_CASE("a worker between two gradients leaves at once") {
  Training training;
  training.Finish();
  CHECK(training.strategy->CancelAfterGradient());
  CHECK(training.ps[0].is_cancelled);
}

TEST_CASE("a gradient that is cancelled on its way is waited for no longer") {
  Training training;
  training.Add(1);
  CHECK_FALSE(training.strategy->CancelAfterGradient());
  training.strategy->Cancel();
  CHECK(training.strategy->CancelAfterGradient());
}

}  // namespace
}  // namespace lockstep::worker
