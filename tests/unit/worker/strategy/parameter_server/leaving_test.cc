// What a worker that is told to stop still sends: all of the gradient at hand, and none after it.
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "tests/support/await.h"
#include "tests/support/bytes_transport.h"
#include "tests/support/manual_time.h"
#include "tests/support/placed_variable.h"
#include "worker/strategy/parameter_server/parameter_server_strategy.h"

namespace lockstep::worker {
namespace {

constexpr size_t kChunk = sizeof(float);
constexpr int kChunks = 9;  // of the largest variable

// Answers at once, but pushes when the test says so: the last chunk of a gradient is judged. After
// Cancel every call is CANCELLED.
class HeldPs final : public test::BytesTransport {
 public:
  void Cancel() override {
    is_cancelled = true;
    Answer(Cancelled());
  }
  void Start(const CallOptions&, google::protobuf::Message* header,
             const std::vector<OutgoingTensor>&, google::protobuf::Message* reply,
             Callback<ReceivedTensors> done) override {
    if (is_cancelled) return done(Cancelled());
    if (const auto* const push = dynamic_cast<const PushRequest*>(header)) {
      test::AcceptPush(*push, &dynamic_cast<PushReply&>(*reply));
      ++pushes;
      parked += push->has_next();
      pending.push_back(std::move(done));
      return;
    }
    if (auto* const token = dynamic_cast<DequeueTokenReply*>(reply)) {
      token->set_step(next_token++);
      return done(ReceivedTensors());
    }
    done(test::AnswerPull(dynamic_cast<const PullRequest&>(*header), zeros,
                          &dynamic_cast<PullReply&>(*reply)));
  }
  // All that wait.
  void AnswerPush() { Answer(ReceivedTensors()); }

  int pushes = 0;
  int parked = 0;  // of these, until the step is over
  int64_t next_token = 1;
  bool is_cancelled = false;
  std::vector<Callback<ReceivedTensors>> pending;
  const std::vector<std::byte> zeros = std::vector<std::byte>(kChunks * kChunk);

 private:
  void Answer(const absl::StatusOr<ReceivedTensors>& answer) {
    for (Callback<ReceivedTensors>& done : std::exchange(pending, {})) done(answer);
  }
  static absl::Status Cancelled() { return absl::CancelledError("calls were cancelled"); }
};

// Those of ps 1 are `chunks` messages.
Placement OneVariableEach(int chunks) {
  Placement placement;
  placement.set_shards(2);
  for (uint32_t k = 0; k < 2; ++k) {
    *placement.add_variables() =
        PlacedVariable(k, absl::StrCat("v", k), k == 1 ? chunks : 1, k, true, 0);
  }
  return placement;
}

// Has begun step 0. Variable k is at ps k.
struct Training {
  explicit Training(bool token_per_replica = false, int chunks = 1)
      : layout(*VariableLayout::Create(OneVariableEach(chunks))) {
    ShardGroupOptions options;
    options.session.push_chunk_bytes = options.session.bucket_bytes = kChunk;
    options.token_per_replica = token_per_replica;
    options.shard_names = {"ps 0", "ps 1"};
    strategy = *ParameterServerStrategy::Create({.shards = options}, layout,
                                                {.shards = shards, .timer = &time, .clock = &time},
                                                std::vector<int64_t>(2), nullptr);
    REQUIRE(BeginStep(0).ok());
  }
  // Where a check has failed, calls are pending.
  ~Training() { strategy->Cancel(); }
  absl::Status BeginStep(int64_t step) {
    Answer<StepValues> begun;
    strategy->BeginStep({GlobalStep(step), rows}, begun.done());
    return begun.Wait().status();
  }
  void Add(int variable) { strategy->AddGradients({&variable, 1}); }
  void EndStep() { strategy->EndStep(std::nullopt, ended.done()); }
  // Asks for the values of the next step, too.
  void EndStepAndFetch() {
    strategy->EndStep(StepInput{.step = GlobalStep(1), .rows = rows}, ended.done());
  }
  // Sends the gradient, which is judged.
  void Finish() {
    Add(1);
    Add(0);
    EndStep();
    for (HeldPs& judge : ps) judge.AnswerPush();
    REQUIRE(ended.Wait().ok());
  }

  const VariableLayout layout;
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

TEST_CASE("a ps that waits for the end of the step does not keep the others from their parts") {
  Training training(/*token_per_replica=*/true, kChunks);
  training.Add(1);
  training.Add(0);
  training.EndStep();
  REQUIRE(training.ps[0].parked == 1);
  const int window = SessionOptions().window;
  for (int sent = window; sent < kChunks; sent += window) {
    REQUIRE(training.ps[1].pushes == sent);
    CHECK_FALSE(training.strategy->CancelAfterGradient());
    training.ps[1].AnswerPush();
  }
  REQUIRE(training.ps[1].pushes == kChunks);
  CHECK_FALSE(training.strategy->CancelAfterGradient());
  training.ps[1].AnswerPush();
  // Now the step is up to other workers.
  CHECK(training.strategy->CancelAfterGradient());
  CHECK(absl::IsCancelled(training.ended.Wait().status()));
}

TEST_CASE("a worker whose gradient waits at every ps for the end of the step leaves at once") {
  Training training(/*token_per_replica=*/true);
  training.Add(1);
  CHECK_FALSE(training.strategy->CancelAfterGradient());
  training.Add(0);
  CHECK_FALSE(training.strategy->CancelAfterGradient());
  training.EndStepAndFetch();
  for (const HeldPs& ps : training.ps) REQUIRE(ps.parked == 1);
  CHECK(training.strategy->CancelAfterGradient());
  CHECK(absl::IsCancelled(training.ended.Wait().status()));
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
