// Sessions and gradients whose shard another ps comes to serve.
#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "absl/functional/any_invocable.h"
#include "absl/synchronization/notification.h"
#include "common/client/push_plan.h"
#include "common/client/shard_session.h"
#include "tests/support/manual_time.h"
#include "tests/support/ps_data.h"
#include "tests/support/thread_timer.h"

namespace lockstep {
namespace {

// Its calls go elsewhere when the test says so.
class MovingPs final : public PsData {
 public:
  void Push(const PushRequest& header, std::vector<std::span<const std::byte>>,
            Callback<PushReply> done) override {
    PushReply reply;
    for (int i = 0; i < header.pieces_size(); ++i) reply.add_outcomes()->set_verdict(ACCEPTED);
    if (holds_pushes) {
      held_.push_back([reply, done = std::move(done)]() mutable { done(std::move(reply)); });
    } else if (push_failure.ok()) {
      done(std::move(reply));
    } else {
      done(push_failure);
    }
    const int pushes = pushes_.fetch_add(1) + 1;
    if (pushes == 2) pushed_twice.Notify();
  }
  // ACCEPTED is told of each push that was held.
  void AnswerHeld() {
    for (auto& answer : std::exchange(held_, {})) answer();
  }
  void Pull(const PullRequest&, Callback<std::unique_ptr<PulledValues>> done) override {
    done(absl::UnimplementedError("pull"));
  }
  void DequeueToken(const DequeueTokenRequest&, Callback<DequeueTokenReply> done) override {
    done(absl::UnimplementedError("dequeue"));
  }
  void Cancel() override {}
  uint64_t generation() const override { return generation_.load(); }
  void NotifyOfMoves(std::weak_ptr<const std::function<void()>> on_move) override {
    on_move_ = std::move(on_move);
  }
  // Whether somebody wants to know.
  bool Move() {
    generation_.fetch_add(1);
    const auto on_move = on_move_.lock();
    if (on_move != nullptr) (*on_move)();
    return on_move != nullptr;
  }

  int pushes() const { return pushes_.load(); }

  absl::Notification pushed_twice;
  absl::Status push_failure;  // of those to come; set before a move
  bool holds_pushes = false;

 private:
  std::atomic<int> pushes_ = 0;
  std::vector<absl::AnyInvocable<void()>> held_;
  std::atomic<uint64_t> generation_ = 0;
  std::weak_ptr<const std::function<void()>> on_move_;
};

TEST_CASE("A gradient that was judged is sent again after a move, though no call is under way") {
  MovingPs ps;
  ThreadTimer timer;
  const Tensor gradient = Tensor::Zeros(DType::kFloat32, Shape({4}));
  {
    ShardSession session({}, &ps, &timer);
    session.BeginGradient(PushSeq(1), GlobalStep(0), 1);
    session.Add({VariableId(0), gradient.shape(), gradient.view()});
    bool is_judged = false;
    session.EndStep(DequeueSeq(), [&](const absl::StatusOr<PushSummary>& summary) {
      is_judged = summary.ok() && summary->accepted == 1;
    });
    REQUIRE(is_judged);
    REQUIRE(ps.Move());
    ps.pushed_twice.WaitForNotification();
  }
  CHECK_FALSE(ps.Move());
}

// A session that has pushed a gradient which was judged.
struct Judged {
  Judged() {
    session.NotifyOfLoss([this](const absl::Status& loss) { losses.push_back(loss); });
    session.BeginGradient(PushSeq(1), GlobalStep(0), 1);
    session.Add({VariableId(0), gradient.shape(), gradient.view()});
    session.EndStep(DequeueSeq(),
                    [this](absl::StatusOr<PushSummary> told) { summary = std::move(told); });
    REQUIRE(summary.ok());
  }
  void Move(absl::Status push_failure) {
    ps.push_failure = std::move(push_failure);
    REQUIRE(ps.Move());
    time.Advance(absl::ZeroDuration());
  }
  bool Forget() {
    bool is_forgotten = false;
    session.ForgetGradient([&] { is_forgotten = true; });
    return is_forgotten;
  }

  MovingPs ps;
  test::ManualTime time;
  const Tensor gradient = Tensor::Zeros(DType::kFloat32, Shape({4}));
  absl::StatusOr<PushSummary> summary = absl::UnknownError("not told");
  std::vector<absl::Status> losses;
  ShardSession session{{}, &ps, &time, &time};
};

TEST_CASE("A gradient that cannot be sent to the next ps is tried for a while, then lost once") {
  Judged judged;
  judged.Move(absl::UnavailableError("cut off"));
  const int seconds = static_cast<int>(absl::ToInt64Seconds(SessionOptions().patience));
  for (int i = 0; i < seconds; ++i) {
    CHECK(judged.losses.empty());
    judged.time.Advance(absl::Seconds(1));
  }
  for (int i = 0; i < seconds && judged.losses.empty(); ++i) judged.time.Advance(absl::Seconds(1));
  REQUIRE(judged.losses.size() == 1);
  CHECK(absl::IsUnavailable(judged.losses[0]));
  // Nothing more of it is sent, also to a third ps.
  const int pushes = judged.ps.pushes();
  CHECK(pushes > seconds);
  judged.Move(absl::OkStatus());
  judged.time.Advance(absl::Seconds(10));
  CHECK(judged.ps.pushes() == pushes);
  CHECK(judged.losses.size() == 1);
  CHECK(judged.Forget());
}

TEST_CASE("A gradient that the next ps refuses is lost") {
  Judged judged;
  judged.Move(absl::InvalidArgumentError("no such variable"));
  REQUIRE(judged.losses.size() == 1);
  CHECK(absl::IsInvalidArgument(judged.losses[0]));
  // The next gradient is another one.
  judged.ps.push_failure = absl::OkStatus();
  judged.session.BeginGradient(PushSeq(2), GlobalStep(1), 1);
  judged.session.Add({VariableId(0), judged.gradient.shape(), judged.gradient.view()});
  absl::StatusOr<PushSummary> second = absl::UnknownError("not told");
  judged.session.EndStep(DequeueSeq(), [&](absl::StatusOr<PushSummary> told) { second = told; });
  REQUIRE(second.ok());
  CHECK(second->accepted == 1);
  CHECK(judged.losses.size() == 1);
}

TEST_CASE("A gradient that was forgotten or cancelled is not lost") {
  Judged judged;
  judged.Move(absl::UnavailableError("cut off"));
  const int pushes = judged.ps.pushes();
  SECTION("forgotten") { CHECK(judged.Forget()); }
  SECTION("cancelled") { judged.session.Cancel(); }
  for (int i = 0; i < 300; ++i) judged.time.Advance(absl::Seconds(1));
  CHECK(judged.losses.empty());
  CHECK(judged.ps.pushes() == pushes);
}

// The transport takes the answer for one of the ps that serves, and the session hears of the move
// before it has looked at it.
TEST_CASE("What a ps has judged that was left meanwhile is sent to the next one") {
  const uint64_t most_fused_bytes = GENERATE(0, 1024);
  CAPTURE(most_fused_bytes);
  MovingPs ps;
  ps.holds_pushes = true;
  test::ManualTime time;
  const Tensor gradient = Tensor::Zeros(DType::kFloat32, Shape({4}));
  std::optional<absl::StatusOr<PushSummary>> summary;
  ShardSession session({.most_fused_bytes = most_fused_bytes}, &ps, &time, &time);
  session.BeginGradient(PushSeq(1), GlobalStep(0), 1);
  session.Add({VariableId(0), gradient.shape(), gradient.view()});
  session.EndStep(DequeueSeq(1),
                  [&](absl::StatusOr<PushSummary> told) { summary = std::move(told); });
  REQUIRE(ps.pushes() == 1);
  REQUIRE(ps.Move());
  time.Advance(absl::ZeroDuration());
  REQUIRE(ps.pushes() == 1);
  ps.AnswerHeld();
  time.Advance(absl::Seconds(1));
  CHECK_FALSE(summary.has_value());
  CHECK(ps.pushes() == 2);
  ps.AnswerHeld();
  REQUIRE(summary.has_value());
  REQUIRE(summary->ok());
  CHECK((*summary)->accepted == 1);
  CHECK(ps.pushes() == 2);
}

TEST_CASE("What a lost ps had judged is sent as bytes, too, where the next one does not see it") {
  const Shape shape({60});
  PushPlan plan(SessionOptions(), GlobalStep(7), 2);
  for (uint32_t id = 0; id < 2; ++id) {
    plan.Add({{.id = VariableId(id), .shape = shape, .values = {DType::kUInt8, shape, nullptr}},
              /*by_reference=*/true});
  }
  plan.OnError(plan.Next(absl::Seconds(100))->message, absl::UnavailableError("gone"),
               absl::Seconds(100));
  absl::Duration now = absl::Seconds(105);
  const auto question = plan.Next(now);
  PushReply reply;
  reply.add_outcomes()->set_verdict(ACCEPTED);
  reply.add_outcomes()->set_verdict(PENDING);
  plan.OnReply(question->message, reply, now);
  plan.OnError(plan.Next(now)->message, absl::NotFoundError("what memory?"), now);
  const auto as_bytes = plan.Next(now);
  REQUIRE(as_bytes.has_value());
  // Before it is answered another ps takes over.
  plan.Repeat();
  plan.OnError(as_bytes->message, absl::UnavailableError("gone"), now);
  std::vector<size_t> accepted;
  for (int calls = 0; calls < 5 && !plan.Result().has_value(); ++calls) {
    now += absl::Seconds(5);
    const auto outgoing = plan.Next(now);
    if (!outgoing.has_value()) continue;
    reply.clear_outcomes();
    for (const PushPlan::Piece& piece : outgoing->pieces) {
      reply.add_outcomes()->set_verdict(outgoing->ask ? PENDING : ACCEPTED);
      if (!outgoing->ask) accepted.push_back(piece.variable);
    }
    plan.OnReply(outgoing->message, reply, now);
  }
  CHECK(accepted == std::vector<size_t>{0, 1});
  REQUIRE(plan.Result().has_value());
  CHECK((*plan.Result())->accepted == 2);
}

}  // namespace
}  // namespace lockstep
