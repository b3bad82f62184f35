// The calls of a step's end fused to one, over a ps whose answers the test decides.
#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/client/shard_session.h"
#include "tests/support/fake_ps_data.h"
#include "tests/support/thread_timer.h"

namespace lockstep {
namespace {

using Values = std::unique_ptr<PulledValues>;

// Notes every call, and answers when it is told to.
class NotingPs final : public PsData {
 public:
  void Push(const PushRequest& header, std::vector<std::span<const std::byte>>,
            Callback<PushReply> done) override {
    calls.push_back(header.ask() ? "ask" : "push");
    header_ = header;
    pushed_.push_back(std::move(done));
    if (header.ask()) asked.Notify();
  }
  void PushPull(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                Callback<PushPullReply> done) override {
    calls.push_back("fused");
    header_ = header;
    bytes = 0;
    for (const auto& span : payload) bytes += span.size();
    fused_ = std::move(done);
  }
  void Pull(const PullRequest& request, Callback<Values> done) override {
    calls.push_back("pull");
    pull_ = request;
    pulled_ = std::move(done);
  }
  void DequeueToken(const DequeueTokenRequest&, Callback<DequeueTokenReply> done) override {
    calls.push_back("dequeue");
    done(DequeueTokenReply());
  }
  void Cancel() override { calls.push_back("cancel"); }
  bool SharesMemory() const override { return true; }

  PushReply Verdicts(Verdict verdict) const {
    PushReply reply;
    for (int i = 0; i < header_.pieces_size(); ++i) reply.add_outcomes()->set_verdict(verdict);
    return reply;
  }
  static Values ValuesFor(const PullRequest& pull) {
    PullReply header;
    header.set_version(pull.version());
    std::string payload;
    for (const PullPiece& piece : pull.pieces()) {
      *header.add_pieces() = piece;
      payload.append(piece.size(), static_cast<char>(pull.version()));
    }
    return std::make_unique<PulledValues>(std::move(header), std::move(payload));
  }
  void AnswerFused(absl::StatusOr<PushPullReply> reply) {
    std::exchange(fused_, nullptr)(std::move(reply));
  }
  // All of them.
  void AnswerPushes(const absl::StatusOr<PushReply>& reply) {
    for (Callback<PushReply>& done : std::exchange(pushed_, {})) done(reply);
  }
  void AnswerPull() { std::exchange(pulled_, nullptr)(ValuesFor(pull_)); }

  const PushRequest& header() const { return header_; }
  absl::Notification asked;  // after a pause, on the timer's thread
  std::vector<std::string> calls;
  size_t bytes = 0;

 private:
  PushRequest header_;
  PullRequest pull_;
  std::vector<Callback<PushReply>> pushed_;
  Callback<PushPullReply> fused_;
  Callback<Values> pulled_;
};

// A worker's end of a step: two variables of four bytes, which are pushed and then pulled.
class StepEnd {
 public:
  explicit StepEnd(PsData* ps, size_t chunk_bytes = 1024, uint64_t most_bytes = 8)
      : session_(OptionsOf(chunk_bytes, most_bytes), ps, &timer_) {
    session_.SetTargets({{VariableId(0), values_[0].view()}, {VariableId(1), values_[1].view()}});
  }

  void Begin(int64_t step, bool fetches = true) {
    session_.BeginGradient(PushSeq(static_cast<uint64_t>(step) + 1), GlobalStep(step), 2);
    for (uint32_t i : {1, 0}) {
      session_.Add({VariableId(i), gradients_[i].shape(), gradients_[i].view()});
    }
    if (fetches) Fetch(step + 1);
  }
  void Fetch(int64_t of) {
    session_.Fetch(GlobalStep(of), FetchKind::kAhead,
                   [this](absl::StatusOr<GlobalStep> got) { version = std::move(got); });
  }
  // Whether the shard answers when the step is over.
  bool End(uint64_t dequeue_seq) {
    const bool holds = session_.HoldsGradient();
    session_.EndStep(DequeueSeq(dequeue_seq), [this](absl::StatusOr<PushSummary> summary) {
      had_values = version.has_value();
      verdicts = std::move(summary);
      if (told != nullptr) told->Notify();
    });
    return holds;
  }
  ShardSession& session() { return session_; }
  uint8_t Value(size_t variable) const { return values_[variable].as<uint8_t>()[0]; }
  bool has_token() const { return (*verdicts)->token.has_value(); }

  std::optional<absl::StatusOr<PushSummary>> verdicts;
  std::optional<absl::StatusOr<GlobalStep>> version;
  bool had_values = false;  // when the verdicts came
  // For verdicts that come on the timer's thread. May be null.
  absl::Notification* told = nullptr;

 private:
  static SessionOptions OptionsOf(size_t chunk_bytes, uint64_t most_bytes) {
    SessionOptions options;
    options.push_chunk_bytes = chunk_bytes;
    options.bucket_bytes = chunk_bytes;
    options.most_fused_bytes = most_bytes;
    options.identity.set_worker(3);
    return options;
  }

  const Tensor gradients_[2] = {Tensor::Zeros(DType::kUInt8, Shape({4})),
                                Tensor::Zeros(DType::kUInt8, Shape({4}))};
  Tensor values_[2] = {Tensor::Zeros(DType::kUInt8, Shape({4})),
                       Tensor::Zeros(DType::kUInt8, Shape({4}))};
  ThreadTimer timer_;
  ShardSession session_;
};

using Calls = std::vector<std::string>;

TEST_CASE("a gradient of one message, the next values and the token are one call") {
  NotingPs ps;
  StepEnd worker(&ps);
  for (int64_t step : {0, 1, 2}) {
    worker.verdicts.reset();
    worker.version.reset();
    ps.calls.clear();
    worker.Begin(step);
    CHECK(ps.calls.empty());
    CHECK(worker.End(static_cast<uint64_t>(step) + 5));
    CHECK(ps.calls == Calls{"fused"});
    CHECK(ps.bytes == 8);
    CHECK(ps.header().worker().worker() == 3);
    CHECK(ps.header().next().dequeue_seq() == static_cast<uint64_t>(step) + 5);
    CHECK(ps.header().next().pull().version() == step + 1);
    CHECK(ps.header().next().pull().pieces_size() == 2);
    CHECK_FALSE(ps.header().next().pull().has_worker());
    PushPullReply reply{ps.Verdicts(ACCEPTED), ps.ValuesFor(ps.header().next().pull())};
    reply.push.mutable_next()->mutable_token()->set_step(step + 1);
    ps.AnswerFused(std::move(reply));
    REQUIRE(worker.verdicts.has_value());
    CHECK((*worker.verdicts)->accepted == 2);
    CHECK(worker.had_values);
    CHECK(**worker.version == GlobalStep(step + 1));
    CHECK(worker.Value(1) == step + 1);
    REQUIRE(worker.has_token());
    CHECK((*worker.verdicts)->token->step() == step + 1);
    CHECK(ps.calls == Calls{"fused"});
  }
}

TEST_CASE("told the verdicts alone, a worker pulls by itself and asks for its token") {
  for (const Verdict verdict : {ACCEPTED, STALE}) {
    NotingPs ps;
    StepEnd worker(&ps);
    worker.Begin(0);
    worker.End(1);
    ps.AnswerFused(PushPullReply{ps.Verdicts(verdict), nullptr});
    CHECK((*worker.verdicts)->accepted == (verdict == ACCEPTED ? 2 : 0));
    CHECK((*worker.verdicts)->stale == (verdict == STALE ? 2 : 0));
    CHECK_FALSE(worker.has_token());
    CHECK(ps.calls == Calls{"fused", "pull"});
    ps.AnswerPull();
    CHECK(**worker.version == GlobalStep(1));
  }
}

TEST_CASE("what became of a gradient whose call was lost is asked, and the rest is asked alone") {
  NotingPs ps;
  StepEnd worker(&ps);
  worker.Begin(0);
  CHECK(worker.session().OwesGradient());
  worker.End(1);
  CHECK_FALSE(worker.session().OwesGradient());
  ps.AnswerFused(absl::UnavailableError("gone"));
  CHECK(worker.session().OwesGradient());
  CHECK_FALSE(worker.verdicts.has_value());
  ps.AnswerPull();
  CHECK(**worker.version == GlobalStep(1));
  ps.asked.WaitForNotification();
  CHECK(ps.calls == Calls{"fused", "pull", "ask"});
  absl::Notification told;
  worker.told = &told;
  ps.AnswerPushes(ps.Verdicts(ACCEPTED));
  told.WaitForNotification();
  CHECK((*worker.verdicts)->accepted == 2);
  CHECK_FALSE(worker.has_token());
}

TEST_CASE("a call that has waited for its deadline is issued again, however often") {
  NotingPs ps;
  StepEnd worker(&ps);
  worker.Begin(0);
  worker.End(1);
  for (int i = 0; i < 10; ++i) ps.AnswerFused(absl::DeadlineExceededError("parked"));
  CHECK(ps.calls == Calls(11, "fused"));
  CHECK(ps.bytes == 8);
  CHECK(ps.header().next().dequeue_seq() == 1);
  PushPullReply reply{ps.Verdicts(ACCEPTED), ps.ValuesFor(ps.header().next().pull())};
  reply.push.mutable_next()->mutable_token()->set_step(1);
  ps.AnswerFused(std::move(reply));
  CHECK((*worker.verdicts)->accepted == 2);
  CHECK(**worker.version == GlobalStep(1));
  CHECK((*worker.verdicts)->token->step() == 1);
}

TEST_CASE("a gradient that is refused fails, and the pull is made alone") {
  NotingPs ps;
  StepEnd worker(&ps);
  worker.Begin(0);
  worker.End(1);
  ps.AnswerFused(absl::AbortedError("another epoch"));
  CHECK(absl::IsAborted(worker.verdicts->status()));
  CHECK(ps.calls == Calls{"fused", "pull"});
  ps.AnswerPull();
}

TEST_CASE("a gradient of several messages is pushed as it comes, and the rest is asked alone") {
  NotingPs ps;
  StepEnd worker(&ps, /*chunk_bytes=*/4);
  worker.Begin(0);
  CHECK(ps.calls == Calls{"push", "push", "pull"});
  CHECK_FALSE(worker.End(1));
  CHECK(ps.calls.size() == 3);
  ps.AnswerPull();
  ps.AnswerPushes(ps.Verdicts(ACCEPTED));
  CHECK((*worker.verdicts)->accepted == 2);
}

TEST_CASE("chunks of the only variable are pushed as they come, too") {
  NotingPs ps;
  StepEnd worker(&ps, /*chunk_bytes=*/4, /*most_bytes=*/64);
  const Tensor gradient = Tensor::Zeros(DType::kUInt8, Shape({8}));
  worker.session().BeginGradient(PushSeq(1), GlobalStep(0), 1);
  worker.session().Add({VariableId(0), gradient.shape(), gradient.view()});
  worker.Fetch(1);
  CHECK(ps.calls == Calls{"push", "push", "pull"});
  CHECK_FALSE(worker.End(1));
  ps.AnswerPull();
  ps.AnswerPushes(ps.Verdicts(ACCEPTED));
  CHECK((*worker.verdicts)->accepted == 1);
}

TEST_CASE("a gradient of one message that is larger than wanted is pushed as it comes, too") {
  NotingPs ps;
  StepEnd worker(&ps, /*chunk_bytes=*/1024, /*most_bytes=*/7);
  worker.Begin(0);
  CHECK(ps.calls == Calls{"push", "pull"});
  CHECK_FALSE(worker.End(1));
  ps.AnswerPull();
  ps.AnswerPushes(ps.Verdicts(ACCEPTED));
  CHECK((*worker.verdicts)->accepted == 2);
}

TEST_CASE("without a pull a token comes with the verdicts, and without a token the values do") {
  NotingPs ps;
  StepEnd worker(&ps);
  worker.Begin(0, /*fetches=*/false);
  CHECK(worker.End(1));
  CHECK_FALSE(ps.header().next().has_pull());
  CHECK(ps.header().next().dequeue_seq() == 1);
  ps.AnswerFused(PushPullReply{ps.Verdicts(ACCEPTED), nullptr});
  CHECK(ps.calls == Calls{"fused"});

  worker.Begin(1);
  CHECK(worker.End(0));
  CHECK(ps.header().next().dequeue_seq() == 0);
  ps.AnswerFused(PushPullReply{ps.Verdicts(ACCEPTED), ps.ValuesFor(ps.header().next().pull())});
  CHECK(**worker.version == GlobalStep(2));
}

TEST_CASE("with nothing to ask for, a push that was held is a push") {
  NotingPs ps;
  StepEnd worker(&ps);
  worker.Begin(0, /*fetches=*/false);
  CHECK(ps.calls.empty());
  worker.End(0);
  CHECK(ps.calls == Calls{"push"});
  ps.AnswerPushes(ps.Verdicts(ACCEPTED));
  CHECK(worker.verdicts->ok());
}

TEST_CASE("a fetch before a gradient goes alone, and so does one after its end") {
  NotingPs ps;
  StepEnd worker(&ps);
  worker.Fetch(0);
  CHECK(ps.calls == Calls{"pull"});
  ps.AnswerPull();
  worker.Begin(0, /*fetches=*/false);
  CHECK(ps.calls == Calls{"pull"});
  CHECK(worker.End(1));
  worker.Fetch(1);
  CHECK(ps.calls == Calls{"pull", "fused", "pull"});
  CHECK_FALSE(ps.header().next().has_pull());
  ps.AnswerPull();
  ps.AnswerFused(PushPullReply{ps.Verdicts(ACCEPTED), nullptr});
  CHECK((*worker.verdicts)->accepted == 2);
}

TEST_CASE("a fetch waits while the gradient may still be one message") {
  NotingPs ps;
  StepEnd worker(&ps);
  const Tensor gradient = Tensor::Zeros(DType::kUInt8, Shape({4}));
  worker.session().BeginGradient(PushSeq(1), GlobalStep(0), 2);
  worker.Fetch(1);
  worker.session().Add({VariableId(1), gradient.shape(), gradient.view()});
  CHECK(worker.session().HoldsGradient());
  CHECK(ps.calls.empty());
  worker.session().Add({VariableId(0), gradient.shape(), gradient.view()});
  CHECK(ps.calls.empty());
  CHECK(worker.End(4));
  CHECK(ps.calls == Calls{"fused"});
  CHECK(ps.header().next().has_pull());
  CHECK(ps.header().next().dequeue_seq() == 4);
  ps.AnswerFused(PushPullReply{ps.Verdicts(ACCEPTED), ps.ValuesFor(ps.header().next().pull())});
  CHECK(**worker.version == GlobalStep(1));
}

TEST_CASE("a gradient without variables holds nothing up") {
  NotingPs ps;
  StepEnd worker(&ps);
  worker.session().BeginGradient(PushSeq(1), GlobalStep(0), 0);
  worker.Fetch(1);
  CHECK(ps.calls == Calls{"pull"});
  CHECK_FALSE(worker.End(1));
  CHECK((*worker.verdicts)->accepted == 0);
  CHECK_FALSE(worker.has_token());
  ps.AnswerPull();
}

TEST_CASE("Cancel ends what is held") {
  NotingPs ps;
  StepEnd worker(&ps);
  worker.Begin(0);
  worker.session().Cancel();
  CHECK(ps.calls == Calls{"cancel"});
  CHECK(absl::IsCancelled(worker.version->status()));
  worker.End(1);
  CHECK(absl::IsCancelled(worker.verdicts->status()));
}

TEST_CASE("over a ps that fuses nothing each call is made alone") {
  FakePsData ps;
  Calls calls;
  ps.on_push = [&](const PushRequest& header, const std::string&) {
    CHECK_FALSE(header.has_next());
    calls.push_back("push");
    PushReply reply;
    for (int i = 0; i < header.pieces_size(); ++i) reply.add_outcomes()->set_verdict(ACCEPTED);
    return reply;
  };
  ps.on_pull = [&](const PullRequest& request) {
    calls.push_back("pull");
    return NotingPs::ValuesFor(request);
  };
  StepEnd worker(&ps);
  worker.Begin(0);
  CHECK(worker.End(1));
  CHECK(calls == Calls{"push", "pull"});
  CHECK((*worker.verdicts)->accepted == 2);
  CHECK(**worker.version == GlobalStep(1));
  CHECK_FALSE(worker.has_token());
}

}  // namespace
}  // namespace lockstep
