// A gradient that was judged by one ps and cannot be sent to the one that serves the shard now.
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <span>
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

// Answers pulls and pushes at once; the last chunk of a gradient is judged. Holds tokens, and
// pushes that ask for one, until the test answers or Cancel.
class MovingPs final : public test::BytesTransport {
 public:
  uint64_t generation() const override { return generation_; }
  void NotifyOfMoves(std::weak_ptr<const std::function<void()>> on_move) override {
    on_move_ = std::move(on_move);
  }
  void Cancel() override {
    is_cancelled_ = true;
    AnswerHeld(Cancelled());
  }
  void Start(const CallOptions&, google::protobuf::Message* header,
             const std::vector<OutgoingTensor>&, google::protobuf::Message* reply,
             Callback<ReceivedTensors> done) override {
    if (is_cancelled_) return done(Cancelled());
    if (const auto* const push = dynamic_cast<const PushRequest*>(header)) {
      ++pushes;
      test::AcceptPush(*push, &dynamic_cast<PushReply&>(*reply));
      if (push->has_next() || holds_pushes) return Hold(std::move(done));
      if (!push_failure.ok()) return done(push_failure);
      return done(ReceivedTensors());
    }
    if (auto* const token = dynamic_cast<DequeueTokenReply*>(reply)) {
      token->set_step(1);
      return Hold(std::move(done));
    }
    done(test::AnswerPull(dynamic_cast<const PullRequest&>(*header), zeros_,
                          &dynamic_cast<PullReply&>(*reply)));
  }
  // Another ps serves the shard now.
  void Move() {
    ++generation_;
    (*on_move_.lock())();
  }
  size_t num_held() const { return held_.size(); }
  void AnswerHeld(const absl::Status& status) {
    for (Callback<ReceivedTensors>& done : std::exchange(held_, {})) {
      if (!status.ok()) {
        done(status);
      } else {
        done(ReceivedTensors());
      }
    }
  }

  absl::Status push_failure;
  bool holds_pushes = false;
  int pushes = 0;

 private:
  void Hold(Callback<ReceivedTensors> done) { held_.push_back(std::move(done)); }
  static absl::Status Cancelled() { return absl::CancelledError("calls were cancelled"); }

  uint64_t generation_ = 0;
  std::weak_ptr<const std::function<void()>> on_move_;
  bool is_cancelled_ = false;
  std::vector<Callback<ReceivedTensors>> held_;
  const std::vector<std::byte> zeros_ = std::vector<std::byte>(2 * kChunk);
};

// One variable at each of two ps. That of ps 1 is two messages, so that it waits for no token.
Placement OneVariableEach() {
  Placement placement;
  placement.set_shards(2);
  for (uint32_t k = 0; k < 2; ++k) {
    *placement.add_variables() = PlacedVariable(k, absl::StrCat("v", k), k + 1, k, true, 0);
  }
  return placement;
}

// Has sent the gradient of step 0: ps 1 has judged its part, and ps 0 holds a call.
struct Training {
  explicit Training(bool token_per_replica, absl::Status first_failure = absl::OkStatus())
      : layout(*VariableLayout::Create(OneVariableEach())) {
    ps[1].push_failure = std::move(first_failure);
    ShardGroupOptions options;
    options.session.push_chunk_bytes = options.session.bucket_bytes = kChunk;
    options.token_per_replica = token_per_replica;
    options.shards_may_move = true;
    options.shard_names = {"ps 0", "ps 1"};
    strategy = *ParameterServerStrategy::Create({.shards = options}, layout,
                                                {.shards = shards, .timer = &time, .clock = &time},
                                                std::vector<int64_t>(2), nullptr);
    Answer<StepValues> begun;
    strategy->BeginStep({GlobalStep(0), rows}, begun.done());
    REQUIRE(begun.Wait().ok());
    for (const int variable : {1, 0}) strategy->AddGradients({&variable, 1});
    strategy->EndStep(std::nullopt, ended.done());
  }
  // Where a check has failed, calls are pending.
  ~Training() { strategy->Cancel(); }
  void Move(absl::Status push_failure) {
    ps[1].push_failure = std::move(push_failure);
    ps[1].Move();
    time.Advance(absl::ZeroDuration());
  }
  // How long pushes went on.
  absl::Duration AwaitEnd(absl::Duration limit) {
    const absl::Duration begin = time.Monotonic();
    while (!ended.answered() && time.Monotonic() - begin < limit) time.Advance(absl::Seconds(1));
    return time.Monotonic() - begin;
  }

  const VariableLayout layout;
  const std::vector<std::span<const int64_t>> rows = std::vector<std::span<const int64_t>>(2);
  MovingPs ps[2];
  std::vector<TensorTransport*> shards = {&ps[0], &ps[1]};
  test::ManualTime time;
  std::unique_ptr<ParameterServerStrategy> strategy;
  Answer<StepOutcome> ended;
};

TEST_CASE("A gradient that the next ps cannot be sent ends the step when patience does") {
  // The call that ps 0 holds is that of the token, or the push that asks for it, too.
  const bool token_per_replica = GENERATE(false, true);
  CAPTURE(token_per_replica);
  Training training(token_per_replica);
  REQUIRE(training.ps[1].pushes == 2);
  REQUIRE(training.ps[0].num_held() == 1);
  training.Move(absl::UnavailableError("cut off"));
  CHECK(training.ps[1].pushes > 2);
  CHECK_FALSE(training.ended.answered());
  const absl::Duration patience = SessionOptions().patience;
  const absl::Duration tried = training.AwaitEnd(2 * patience);
  REQUIRE(training.ended.answered());
  CHECK(tried >= patience);
  CHECK(tried <= patience + absl::Seconds(2));
  const absl::Status end = training.ended.Wait().status();
  CHECK(absl::IsUnavailable(end));
  CHECK(end.message() == "cut off (tried for 2m)");
}

TEST_CASE("A gradient that the next ps refuses ends the step at once") {
  const bool token_per_replica = GENERATE(false, true);
  CAPTURE(token_per_replica);
  Training training(token_per_replica);
  training.Move(absl::InvalidArgumentError("no such variable"));
  REQUIRE(training.ended.answered());
  const absl::Status end = training.ended.Wait().status();
  CHECK(absl::IsInvalidArgument(end));
  CHECK(end.message() == "no such variable");
}

TEST_CASE("A gradient that the first ps refuses ends the step at once, too") {
  const bool token_per_replica = GENERATE(false, true);
  CAPTURE(token_per_replica);
  Training training(token_per_replica, absl::InvalidArgumentError("no such variable"));
  REQUIRE(training.ended.answered());
  const absl::Status end = training.ended.Wait().status();
  CHECK(absl::IsInvalidArgument(end));
  CHECK(end.message() == "no such variable");
}

TEST_CASE("A gradient that the next ps takes leaves the step as it is") {
  Training training(/*token_per_replica=*/false);
  training.Move(absl::OkStatus());
  CHECK(training.ps[1].pushes == 4);
  CHECK_FALSE(training.ended.answered());
  training.ps[0].AnswerHeld(absl::OkStatus());
  REQUIRE(training.ended.answered());
  const absl::StatusOr<StepOutcome> outcome = training.ended.Wait();
  REQUIRE(outcome.ok());
  CHECK(outcome->accepted == 2);
  CHECK(outcome->next == GlobalStep(1));
}

TEST_CASE("A gradient that is refused after the token has come is lost to nobody") {
  Training training(/*token_per_replica=*/false);
  training.ps[1].holds_pushes = true;
  training.Move(absl::OkStatus());
  REQUIRE(training.ps[1].num_held() == 2);
  training.ps[0].AnswerHeld(absl::OkStatus());
  // Its memory is in use.
  CHECK_FALSE(training.ended.answered());
  training.ps[1].AnswerHeld(absl::InvalidArgumentError("the step is over"));
  REQUIRE(training.ended.answered());
  CHECK(training.ended.Wait().ok());
}

TEST_CASE("A step that was cancelled says so, though a gradient is on its way again") {
  Training training(/*token_per_replica=*/false);
  training.ps[1].holds_pushes = true;
  training.Move(absl::OkStatus());
  training.strategy->Cancel();
  REQUIRE(training.ended.answered());
  CHECK(absl::IsCancelled(training.ended.Wait().status()));
}

}  // namespace
}  // namespace lockstep::worker
