// A session whose link takes longer for all values than a call's deadline: in simulated time, with
// the deadlines and the sizes of messages that processes have.
#include <algorithm>
#include <catch2/catch.hpp>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/client/shard_session.h"
#include "common/rpc/limits.h"
#include "common/transport/ps_methods.h"
#include "ps/shard/shard.h"
#include "tests/conformance/small_job.h"
#include "tests/support/await.h"
#include "tests/support/in_process_ps.h"
#include "tests/support/manual_time.h"

namespace lockstep {
namespace {

constexpr int64_t kElements = 4 << 20;  // float32: 16 MiB
constexpr int64_t kBytesPerSecond = 100 << 10;
constexpr absl::Duration kTick = absl::Seconds(1);
constexpr absl::Duration kPatience = absl::Minutes(30);

// Carries one byte after the other in each direction. A call that is not over at its deadline has
// used the link in vain.
class ThinLink final : public PsData {
 public:
  // Both outlive the link.
  ThinLink(PsData* ps, test::ManualTime* time) : ps_(ps), time_(time) {}

  void Push(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
            Callback<PushReply> done) override {
    int64_t bytes = 0;
    for (const auto& span : payload) bytes += static_cast<int64_t>(span.size());
    Carry<PushReply>(bytes, kPush.deadline, &up_free_at_, std::move(done),
                     [this, header, payload = std::move(payload)](Callback<PushReply> told) {
                       ps_->Push(header, payload, std::move(told));
                     });
  }
  void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) override {
    int64_t bytes = 0;
    for (const PullPiece& piece : request.pieces()) bytes += static_cast<int64_t>(piece.size());
    Carry<std::unique_ptr<PulledValues>>(
        bytes, kPull.deadline, &down_free_at_, std::move(done),
        [this, request](Callback<std::unique_ptr<PulledValues>> told) {
          ps_->Pull(request, std::move(told));
        });
  }
  void DequeueToken(const DequeueTokenRequest& request, Callback<DequeueTokenReply> done) override {
    ps_->DequeueToken(request, std::move(done));
  }
  void Cancel() override { ps_->Cancel(); }
  int num_expired() const { return num_expired_; }

 private:
  template <typename Reply>
  void Carry(int64_t bytes, absl::Duration deadline, absl::Duration* free_at, Callback<Reply> done,
             absl::AnyInvocable<void(Callback<Reply>)> deliver) {
    REQUIRE(bytes > 0);
    const absl::Duration now = time_->Monotonic();
    *free_at = std::max(*free_at, now) + absl::Seconds(1) * bytes / kBytesPerSecond;
    const absl::Duration takes = *free_at - now;
    if (takes > deadline) {
      ++num_expired_;
      time_->After(deadline, [done = std::move(done)]() mutable {
        done(absl::DeadlineExceededError("too slow"));
      });
      return;
    }
    time_->After(takes, [done = std::move(done), deliver = std::move(deliver)]() mutable {
      deliver(std::move(done));
    });
  }

  PsData* const ps_;
  test::ManualTime* const time_;
  absl::Duration up_free_at_, down_free_at_;
  int num_expired_ = 0;
};

struct Job {
  explicit Job(const SessionOptions& options = {})
      : session(WithWorker(options), &link, &time, &time) {
    const auto control = MakeInProcessControl(&shard, Incarnation(3));
    REQUIRE(CallAndWait(*control, kSetView, TwoWorkers()).ok());
    REQUIRE(CallAndWait(*control, kCreateVariables, Variables({kElements})).ok());
  }
  ~Job() {
    session.Cancel();
    time.Advance(kPatience);
  }
  static SessionOptions WithWorker(SessionOptions options) {
    options.identity = Worker(0);
    return options;
  }
  // How long `result` takes; nullopt: longer than anybody waits.
  template <typename T>
  std::optional<absl::Duration> TimeUntil(const std::optional<T>& result) {
    const absl::Duration begin = time.Monotonic();
    while (!result.has_value()) {
      if (time.Monotonic() - begin > kPatience) return std::nullopt;
      time.Advance(kTick);
    }
    return time.Monotonic() - begin;
  }

  test::ManualTime time;
  ps::Shard shard{ps::ShardOptions{}};
  std::unique_ptr<PsData> ps = MakeInProcessData(&shard);
  ThinLink link{ps.get(), &time};
  ShardSession session;
};

TEST_CASE(
    "values that take longer on the link than a deadline come and go in messages that do not") {
  Job job;
  Tensor values(DType::kFloat32, Shape({kElements}));
  job.session.SetTargets({{.variable = VariableId(0), .value = values.view()}});
  std::optional<absl::StatusOr<GlobalStep>> fetched;
  job.session.Fetch(GlobalStep(0), FetchKind::kPresent,
                    [&](absl::StatusOr<GlobalStep> version) { fetched = version; });
  const auto fetch_time = job.TimeUntil(fetched);
  REQUIRE(fetch_time.has_value());
  CHECK(*fetch_time > 2 * rpc::kParkedDeadline);
  REQUIRE(fetched->ok());
  CHECK(std::ranges::all_of(values.as<float>(), [](float value) { return value == 1; }));

  std::optional<absl::StatusOr<PushSummary>> pushed;
  job.session.BeginGradient(PushSeq(1), GlobalStep(0), 1);
  job.session.Add({VariableId(0), values.shape(), std::as_const(values).view()});
  job.session.EndStep(DequeueSeq(),
                      [&](absl::StatusOr<PushSummary> summary) { pushed = std::move(summary); });
  const auto push_time = job.TimeUntil(pushed);
  REQUIRE(push_time.has_value());
  CHECK(*push_time > 2 * rpc::kDataDeadline);
  REQUIRE(pushed->ok());
  CHECK(job.shard.Report().accepted == 1);
  CHECK(job.link.num_expired() == 0);
}

// That the link is as thin as said.
TEST_CASE("in one message they would never come") {
  // Before the job, whose end is an answer.
  Tensor values(DType::kFloat32, Shape({kElements}));
  std::optional<absl::StatusOr<GlobalStep>> fetched;
  Job job({.fetch_chunk_bytes = sizeof(float) * kElements});
  job.session.SetTargets({{.variable = VariableId(0), .value = values.view()}});
  job.session.Fetch(GlobalStep(0), FetchKind::kPresent,
                    [&](absl::StatusOr<GlobalStep> version) { fetched = version; });
  CHECK_FALSE(job.TimeUntil(fetched).has_value());
  CHECK(job.link.num_expired() > 3);
}

}  // namespace
}  // namespace lockstep
