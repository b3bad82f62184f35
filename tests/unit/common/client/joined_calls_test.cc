// The calls of a step's end joined to one, over a ps whose answers the test decides, with a pusher
// and a puller that know nothing of it.
#include "common/client/joined_calls.h"

#include <catch2/catch.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/synchronization/notification.h"
#include "common/client/gradient_pusher.h"
#include "common/client/variable_puller.h"
#include "tests/support/fake_ps_data.h"

namespace lockstep {
namespace {

using Values = std::unique_ptr<PulledValues>;

// Notes every call, and answers when it is told to.
class NotingPs final : public PsData {
 public:
  void Push(const PushRequest& header, std::vector<std::span<const std::byte>>,
            Done<PushReply> done) override {
    calls.push_back(header.ask() ? "ask" : "push");
    header_ = header;
    pushed_.push_back(std::move(done));
    if (header.ask()) asked.Notify();
  }
  void PushPull(const PushRequest& header, std::vector<std::span<const std::byte>> payload,
                Done<PushPullReply> done) override {
    calls.push_back("joined");
    header_ = header;
    bytes = 0;
    for (const auto& span : payload) bytes += span.size();
    joined_ = std::move(done);
  }
  void Pull(const PullRequest& request, Done<Values> done) override {
    calls.push_back("pull");
    pull_ = request;
    pulled_ = std::move(done);
  }
  void DequeueToken(const DequeueTokenRequest&, Done<DequeueTokenReply> done) override {
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
    return MakePulledValues(std::move(header), std::move(payload));
  }
  void AnswerJoined(absl::StatusOr<PushPullReply> reply) {
    std::exchange(joined_, nullptr)(std::move(reply));
  }
  // All of them.
  void AnswerPushes(const absl::StatusOr<PushReply>& reply) {
    for (const Done<PushReply>& done : std::exchange(pushed_, {})) done(reply);
  }
  void AnswerPull() { std::exchange(pulled_, nullptr)(ValuesFor(pull_)); }

  const PushRequest& header() const { return header_; }
  absl::Notification asked;  // after a pause, on a thread of the pusher's
  std::vector<std::string> calls;
  size_t bytes = 0;

 private:
  PushRequest header_;
  PullRequest pull_;
  std::vector<Done<PushReply>> pushed_;
  Done<PushPullReply> joined_;
  Done<Values> pulled_;
};

// A worker's end of a step: two variables of four bytes, which are pushed and then pulled.
class StepEnd {
 public:
  explicit StepEnd(PsData* ps, size_t chunk_bytes = 1024, uint64_t most_bytes = 8)
      : joined_(ps, most_bytes) {
    PusherOptions push;
    push.chunk_bytes = chunk_bytes;
    push.bucket_bytes = chunk_bytes;
    push.identity.set_worker(3);
    pusher_.emplace(&joined_, push);
    PullerOptions pull;
    pull.identity.set_worker(3);
    puller_.emplace(&joined_, pull,
                    std::vector<PullTarget>{{VariableId(0), values_[0].view()},
                                            {VariableId(1), values_[1].view()}});
  }

  void Begin(int64_t step, bool fetches = true) {
    joined_.Hold(2);
    pusher_->Start(PushSeq(static_cast<uint64_t>(step) + 1), GlobalStep(step), 2,
                   [this](absl::StatusOr<PushSummary> summary) {
                     had_values = version.has_value();
                     verdicts = std::move(summary);
                     if (told != nullptr) told->Notify();
                   });
    for (uint32_t i : {1, 0}) pusher_->Add(VariableId(i), gradients_[i].view());
    if (!fetches) return;
    puller_->Fetch(
        GlobalStep(step + 1), [this](absl::StatusOr<GlobalStep> got) { version = std::move(got); },
        PullAhead::kEverything);
  }
  bool Release(uint64_t dequeue_seq) { return joined_.Release(DequeueSeq(dequeue_seq)); }
  JoinedCalls& calls() { return joined_; }
  uint8_t Value(size_t variable) const { return values_[variable].as<uint8_t>()[0]; }

  std::optional<absl::StatusOr<PushSummary>> verdicts;
  std::optional<absl::StatusOr<GlobalStep>> version;
  bool had_values = false;  // when the verdicts came
  // For verdicts that come on a thread of the pusher's. May be null.
  absl::Notification* told = nullptr;

 private:
  const Tensor gradients_[2] = {Tensor::Zeros(DType::kUInt8, Shape({4})),
                                Tensor::Zeros(DType::kUInt8, Shape({4}))};
  Tensor values_[2] = {Tensor::Zeros(DType::kUInt8, Shape({4})),
                       Tensor::Zeros(DType::kUInt8, Shape({4}))};
  JoinedCalls joined_;
  std::optional<GradientPusher> pusher_;
  std::optional<VariablePuller> puller_;
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
    CHECK(worker.Release(static_cast<uint64_t>(step) + 5));
    CHECK(ps.calls == Calls{"joined"});
    CHECK(ps.bytes == 8);
    CHECK(ps.header().worker().worker() == 3);
    CHECK(ps.header().next().dequeue_seq() == static_cast<uint64_t>(step) + 5);
    CHECK(ps.header().next().pull().version() == step + 1);
    CHECK(ps.header().next().pull().pieces_size() == 2);
    CHECK_FALSE(ps.header().next().pull().has_worker());
    CHECK_FALSE(worker.calls().TakeToken().has_value());
    PushPullReply reply{ps.Verdicts(ACCEPTED), ps.ValuesFor(ps.header().next().pull())};
    reply.push.mutable_next()->mutable_token()->set_step(step + 1);
    ps.AnswerJoined(std::move(reply));
    REQUIRE(worker.verdicts.has_value());
    CHECK((*worker.verdicts)->accepted == 2);
    CHECK(worker.had_values);
    CHECK(**worker.version == GlobalStep(step + 1));
    CHECK(worker.Value(1) == step + 1);
    const auto token = worker.calls().TakeToken();
    REQUIRE(token.has_value());
    CHECK(token->step() == step + 1);
    CHECK_FALSE(worker.calls().TakeToken().has_value());
    CHECK(ps.calls == Calls{"joined"});
  }
}

TEST_CASE("told the verdicts alone, a worker pulls by itself and asks for its token") {
  for (const Verdict verdict : {ACCEPTED, STALE}) {
    NotingPs ps;
    StepEnd worker(&ps);
    worker.Begin(0);
    worker.Release(1);
    ps.AnswerJoined(PushPullReply{ps.Verdicts(verdict), nullptr});
    CHECK((*worker.verdicts)->accepted == (verdict == ACCEPTED ? 2 : 0));
    CHECK((*worker.verdicts)->stale == (verdict == STALE ? 2 : 0));
    CHECK_FALSE(worker.calls().TakeToken().has_value());
    CHECK(ps.calls == Calls{"joined", "pull"});
    ps.AnswerPull();
    CHECK(**worker.version == GlobalStep(1));
  }
}

TEST_CASE("what became of a gradient whose call was lost is asked, and the rest is asked alone") {
  NotingPs ps;
  StepEnd worker(&ps);
  worker.Begin(0);
  worker.Release(1);
  ps.AnswerJoined(absl::UnavailableError("gone"));
  CHECK_FALSE(worker.verdicts.has_value());
  ps.AnswerPull();
  CHECK(**worker.version == GlobalStep(1));
  ps.asked.WaitForNotification();
  CHECK(ps.calls == Calls{"joined", "pull", "ask"});
  absl::Notification told;
  worker.told = &told;
  ps.AnswerPushes(ps.Verdicts(ACCEPTED));
  told.WaitForNotification();
  CHECK((*worker.verdicts)->accepted == 2);
  CHECK_FALSE(worker.calls().TakeToken().has_value());
}

TEST_CASE("a call that has waited for its deadline is issued again, however often") {
  NotingPs ps;
  StepEnd worker(&ps);
  worker.Begin(0);
  worker.Release(1);
  for (int i = 0; i < 10; ++i) ps.AnswerJoined(absl::DeadlineExceededError("parked"));
  CHECK(ps.calls == Calls(11, "joined"));
  CHECK(ps.bytes == 8);
  CHECK(ps.header().next().dequeue_seq() == 1);
  PushPullReply reply{ps.Verdicts(ACCEPTED), ps.ValuesFor(ps.header().next().pull())};
  reply.push.mutable_next()->mutable_token()->set_step(1);
  ps.AnswerJoined(std::move(reply));
  CHECK((*worker.verdicts)->accepted == 2);
  CHECK(**worker.version == GlobalStep(1));
  CHECK(worker.calls().TakeToken()->step() == 1);
}

TEST_CASE("a gradient that is refused fails, and the pull is made alone") {
  NotingPs ps;
  StepEnd worker(&ps);
  worker.Begin(0);
  worker.Release(1);
  ps.AnswerJoined(absl::AbortedError("another epoch"));
  CHECK(absl::IsAborted(worker.verdicts->status()));
  CHECK(ps.calls == Calls{"joined", "pull"});
  ps.AnswerPull();
}

TEST_CASE("a gradient of several messages is pushed as it comes, and the rest is asked alone") {
  NotingPs ps;
  StepEnd worker(&ps, /*chunk_bytes=*/4);
  worker.Begin(0);
  CHECK(ps.calls == Calls{"push", "push", "pull"});
  CHECK_FALSE(worker.Release(1));
  CHECK_FALSE(worker.calls().TakeToken().has_value());
  CHECK(ps.calls.size() == 3);
  ps.AnswerPull();
  ps.AnswerPushes(ps.Verdicts(ACCEPTED));
  CHECK((*worker.verdicts)->accepted == 2);
}

TEST_CASE("a gradient of one message that is larger than wanted is pushed as it comes, too") {
  NotingPs ps;
  StepEnd worker(&ps, /*chunk_bytes=*/1024, /*most_bytes=*/7);
  worker.Begin(0);
  CHECK(ps.calls == Calls{"push", "pull"});
  CHECK_FALSE(worker.Release(1));
  ps.AnswerPull();
  ps.AnswerPushes(ps.Verdicts(ACCEPTED));
  CHECK((*worker.verdicts)->accepted == 2);
}

TEST_CASE("without a pull a token comes with the verdicts, and without a token the values do") {
  NotingPs ps;
  StepEnd worker(&ps);
  worker.Begin(0, /*fetches=*/false);
  CHECK(worker.Release(1));
  CHECK_FALSE(ps.header().next().has_pull());
  CHECK(ps.header().next().dequeue_seq() == 1);
  ps.AnswerJoined(PushPullReply{ps.Verdicts(ACCEPTED), nullptr});
  CHECK(ps.calls == Calls{"joined"});

  worker.Begin(1);
  CHECK(worker.Release(0));
  CHECK(ps.header().next().dequeue_seq() == 0);
  ps.AnswerJoined(PushPullReply{ps.Verdicts(ACCEPTED), ps.ValuesFor(ps.header().next().pull())});
  CHECK(**worker.version == GlobalStep(2));
}

TEST_CASE("with nothing to ask for, a push that was held is a push") {
  NotingPs ps;
  StepEnd worker(&ps);
  worker.Begin(0, /*fetches=*/false);
  CHECK_FALSE(worker.Release(0));
  CHECK(ps.calls == Calls{"push"});
  ps.AnswerPushes(ps.Verdicts(ACCEPTED));
  CHECK(worker.verdicts->ok());
  CHECK_FALSE(worker.Release(1));
}

TEST_CASE("what comes after the release goes alone, and so does what comes without Hold") {
  NotingPs ps;
  JoinedCalls calls(&ps);
  const auto nobody = [](const auto&) {};
  PushRequest one;
  one.add_pieces();
  calls.Pull(PullRequest(), nobody);
  calls.Push(one, {}, nobody);
  CHECK_FALSE(calls.Release(DequeueSeq(1)));
  CHECK(ps.calls == Calls{"pull", "push"});
  calls.Hold(1);
  calls.Push(one, {}, nobody);
  calls.Push(one, {}, nobody);  // another one is held
  CHECK(ps.calls == Calls{"pull", "push", "push"});
  CHECK(calls.Release(DequeueSeq(1)));
  calls.Pull(PullRequest(), nobody);
  CHECK(ps.calls == Calls{"pull", "push", "push", "joined", "pull"});
}

TEST_CASE("a push that comes only after the release, from another thread, is joined all the same") {
  NotingPs ps;
  JoinedCalls calls(&ps);
  const auto nobody = [](const auto&) {};
  PushRequest one, two;
  one.add_pieces();
  two = one;
  two.add_pieces();
  calls.Hold(2);
  calls.Pull(PullRequest(), nobody);
  calls.Pull(PullRequest(), nobody);  // one goes along
  CHECK(calls.Release(DequeueSeq(4)));
  CHECK(ps.calls == Calls{"pull"});
  calls.Push(two, {}, nobody);
  CHECK(ps.calls == Calls{"pull", "joined"});
  CHECK(ps.header().next().has_pull());
  CHECK(ps.header().next().dequeue_seq() == 4);
  // Of a gradient of several messages nothing waits any longer.
  ps.calls.clear();
  calls.Hold(2);
  calls.Pull(PullRequest(), nobody);
  CHECK(calls.Release(DequeueSeq(5)));
  CHECK(ps.calls.empty());
  calls.Push(one, {}, nobody);
  CHECK(ps.calls == Calls{"push", "pull"});
  calls.Push(two, {}, nobody);
  CHECK(ps.calls == Calls{"push", "pull", "push"});
}

TEST_CASE("a gradient without variables holds nothing up") {
  NotingPs ps;
  JoinedCalls calls(&ps);
  calls.Hold(0);
  calls.Pull(PullRequest(), [](const auto&) {});
  CHECK(ps.calls == Calls{"pull"});
  CHECK_FALSE(calls.Release(DequeueSeq(1)));
}

TEST_CASE("Cancel sends what is held after it, so that it is answered") {
  NotingPs ps;
  StepEnd worker(&ps);
  worker.Begin(0, /*fetches=*/false);
  worker.calls().Cancel();
  CHECK(ps.calls == Calls{"cancel", "push"});
  ps.AnswerPushes(absl::CancelledError("calls were cancelled"));
  CHECK(absl::IsCancelled(worker.verdicts->status()));
}

TEST_CASE("over a ps that joins nothing each call is made alone") {
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
  CHECK(worker.Release(1));
  CHECK(calls == Calls{"push", "pull"});
  CHECK((*worker.verdicts)->accepted == 2);
  CHECK(**worker.version == GlobalStep(1));
  CHECK_FALSE(worker.calls().TakeToken().has_value());
}

}  // namespace
}  // namespace lockstep
