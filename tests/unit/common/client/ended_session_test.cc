// Sessions that end while a call is parked at a ps.
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "common/client/shard_session.h"
#include "tests/support/manual_time.h"
#include "tests/support/ps_data.h"

namespace lockstep {
namespace {

// Holds the calls that are answered at the end of the step, and no others. Cancel leaves them, as
// a transport may whose calls end later.
class ParkingPs final : public PsData {
 public:
  void Push(const PushRequest&, std::vector<std::span<const std::byte>>,
            Callback<PushReply> done) override {
    done(absl::UnavailableError("away"));
  }
  void PushPull(const PushRequest&, std::vector<std::span<const std::byte>>,
                Callback<PushPullReply> done) override {
    ++calls;
    parked_ = std::move(done);
  }
  void Pull(const PullRequest&, Callback<std::unique_ptr<PulledValues>> done) override {
    done(absl::UnavailableError("away"));
  }
  void DequeueToken(const DequeueTokenRequest&, Callback<DequeueTokenReply> done) override {
    done(absl::UnavailableError("away"));
  }
  void Cancel() override {}

  bool has_parked() const { return parked_ != nullptr; }
  void Answer(absl::Status status) { std::exchange(parked_, nullptr)(std::move(status)); }

  int calls = 0;

 private:
  Callback<PushPullReply> parked_;
};

TEST_CASE("A session that is cancelled, or goes, makes no parked call again") {
  const bool is_cancelled = GENERATE(false, true);
  CAPTURE(is_cancelled);
  ParkingPs ps;
  test::ManualTime time;
  const Tensor gradient = Tensor::Zeros(DType::kUInt8, Shape({4}));
  std::optional<absl::StatusOr<PushSummary>> verdicts;
  int deadlines = 0;  // after the end
  {
    ShardSession session({.most_fused_bytes = 8}, &ps, &time, &time);
    session.BeginGradient(PushSeq(1), GlobalStep(0), 1);
    session.Add({VariableId(0), gradient.shape(), gradient.view()});
    session.EndStep(DequeueSeq(1),
                    [&](absl::StatusOr<PushSummary> told) { verdicts = std::move(told); });
    REQUIRE(ps.calls == 1);
    ps.Answer(absl::DeadlineExceededError("parked"));
    REQUIRE(ps.calls == 2);
    // Waits for its next attempt, and so is told as soon as the session ends.
    session.DequeueToken(DequeueSeq(2), GlobalStep(0), [&](const auto& token) {
      CHECK(absl::IsCancelled(token.status()));
      for (; ps.has_parked() && deadlines < 5; ++deadlines) {
        ps.Answer(absl::DeadlineExceededError("parked"));
      }
      // The session would wait for the call.
      if (ps.has_parked()) ps.Answer(absl::CancelledError("the test ends it"));
    });
    CHECK(deadlines == 0);
    if (is_cancelled) session.Cancel();
  }
  CHECK(deadlines == 1);
  CHECK(ps.calls == 2);
  REQUIRE(verdicts.has_value());
  CHECK(absl::IsCancelled(verdicts->status()));
}

}  // namespace
}  // namespace lockstep
