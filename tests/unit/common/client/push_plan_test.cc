#include "common/client/push_plan.h"

#include <catch2/catch.hpp>
#include <numeric>

#include "common/transport/outgoing_tensor.h"

namespace lockstep {
namespace {

constexpr absl::Duration kStart = absl::Seconds(100);
constexpr GlobalStep kStep{7};

SessionOptions Options() {
  SessionOptions options;
  options.push_chunk_bytes = 400;
  options.bucket_bytes = 100;
  options.window = 3;
  options.patience = absl::Seconds(10);
  return options;
}

// A gradient of `bytes` bytes that nobody reads.
PushPlan::Variable Dense(uint32_t id, int64_t bytes) {
  const Shape shape({bytes});
  return {VariableId(id), shape, TensorView{DType::kUInt8, shape, nullptr}};
}

class Plan {
 public:
  explicit Plan(std::vector<int64_t> sizes, SessionOptions options = Options())
      : plan_(options, kStep, static_cast<int>(sizes.size())), sizes_(sizes) {}

  void AddAll() {
    for (size_t i = 0; i < sizes_.size(); ++i)
      plan_.Add(Dense(static_cast<uint32_t>(10 + i), sizes_[i]));
  }
  std::optional<PushPlan::Outgoing> Next() { return plan_.Next(now_); }
  PushPlan::Outgoing MustSend() {
    auto outgoing = Next();
    REQUIRE(outgoing.has_value());
    return *outgoing;
  }
  void Reply(const PushPlan::Outgoing& to, Verdict verdict, int64_t shard_step = kStep.value()) {
    ReplyEach(to, std::vector<Verdict>(to.pieces.size(), verdict), shard_step);
  }
  void ReplyEach(const PushPlan::Outgoing& to, const std::vector<Verdict>& verdicts,
                 int64_t shard_step = kStep.value(), bool done = false) {
    PushReply reply;
    reply.set_shard_step(shard_step);
    reply.set_done(done);
    for (Verdict verdict : verdicts) reply.add_outcomes()->set_verdict(verdict);
    plan_.OnReply(to.message, reply, now_);
  }
  void Fail(const PushPlan::Outgoing& to, absl::Status status) {
    plan_.OnError(to.message, status, now_);
  }
  void Pause() {
    REQUIRE(plan_.WakeAt().has_value());
    CHECK(*plan_.WakeAt() > now_);
    CHECK_FALSE(Next().has_value());
    now_ = *plan_.WakeAt();
  }
  absl::StatusOr<PushSummary> MustEnd() {
    const auto result = plan_.Result();
    REQUIRE(result.has_value());
    return *result;
  }
  PushPlan& plan() { return plan_; }
  void Wait(absl::Duration time) { now_ += time; }

 private:
  PushPlan plan_;
  const std::vector<int64_t> sizes_;
  absl::Duration now_ = kStart;
};

TEST_CASE("Large gradients go in chunks, small ones share a message") {
  Plan plan({1000, 60, 30, 400, 350});
  plan.AddAll();
  std::vector<std::vector<std::vector<uint64_t>>> sent;
  for (int i = 0; i < 6; ++i) {
    const auto outgoing = plan.MustSend();
    CHECK_FALSE(outgoing.ask);
    sent.emplace_back();
    for (const PushPlan::Piece& piece : outgoing.pieces)
      sent.back().push_back({piece.variable, piece.offset, piece.size});
    plan.Reply(outgoing, outgoing.pieces[0].variable == 0 && i < 2 ? PENDING : ACCEPTED);
  }
  using Sent = std::vector<std::vector<std::vector<uint64_t>>>;
  CHECK(sent == Sent{{{0, 0, 400}},
                     {{0, 400, 400}},
                     {{0, 800, 200}},
                     {{1, 0, 60}, {2, 0, 30}},
                     {{3, 0, 400}},
                     {{4, 0, 350}}});
  CHECK(plan.MustEnd()->accepted == 5);
}

TEST_CASE("A bucket leaves when it is full, or with the last variable") {
  Plan plan(std::vector<int64_t>(6, 90));
  for (uint32_t i = 0; i < 5; ++i) {
    plan.plan().Add(Dense(i, 90));
    CHECK(plan.Next().has_value() == (i == 4));  // 4 * 90 fit, the fifth does not
  }
  plan.plan().Add(Dense(5, 90));
  CHECK(plan.MustSend().pieces.size() == 2);
}

TEST_CASE("A gradient of no bytes is a piece like any other") {
  Plan plan({0});
  plan.AddAll();
  const auto outgoing = plan.MustSend();
  CHECK(outgoing.pieces.size() == 1);
  plan.Reply(outgoing, ACCEPTED);
  CHECK(plan.MustEnd()->accepted == 1);
}

TEST_CASE("A gradient of no variables is over at once") {
  Plan plan({});
  CHECK(plan.MustEnd()->accepted == 0);
}

TEST_CASE("No more than the window is in flight") {
  Plan plan({4000});
  plan.AddAll();
  const auto first = plan.MustSend();
  plan.MustSend();
  plan.MustSend();
  CHECK_FALSE(plan.Next().has_value());
  CHECK_FALSE(plan.plan().WakeAt().has_value());
  plan.Reply(first, PENDING);
  CHECK(plan.MustSend().pieces[0].offset == 1200);
}

TEST_CASE("What was dropped as stale is not sent to its end") {
  Plan plan({4000, 200});
  plan.AddAll();
  const auto first = plan.MustSend();
  plan.Reply(first, STALE);
  const auto next = plan.MustSend();
  CHECK(next.pieces[0].variable == 1);
  plan.Reply(next, ACCEPTED);
  const auto summary = plan.MustEnd();
  CHECK(summary->stale == 1);
  CHECK(summary->accepted == 1);
}

TEST_CASE("When the shard has closed the step, the rest is asked about first") {
  Plan plan({200, 200, 200});
  plan.AddAll();
  plan.Reply(plan.MustSend(), STALE, kStep.value() + 1);
  const auto second = plan.MustSend();
  CHECK(second.ask);
  plan.Reply(second, STALE, kStep.value() + 1);
  const auto third = plan.MustSend();
  CHECK(third.ask);
  // A slow variable may still be wanted: then it is sent, once.
  plan.Reply(third, PENDING, kStep.value() + 1);
  const auto again = plan.MustSend();
  CHECK(again.message == third.message);
  CHECK_FALSE(again.ask);
  plan.Reply(again, ACCEPTED, kStep.value() + 1);
  CHECK(plan.MustEnd()->stale == 2);
}

TEST_CASE("Asynchronous, a shard that is further on is sent all the same, until it is done") {
  SessionOptions options = Options();
  options.asynchronous = true;
  options.window = 1;
  Plan plan({400, 400, 400}, options);
  plan.AddAll();
  plan.Reply(plan.MustSend(), ACCEPTED, kStep.value() + 5);
  const auto second = plan.MustSend();
  CHECK_FALSE(second.ask);
  plan.ReplyEach(second, {STALE}, kStep.value() + 4, /*done=*/true);
  const auto third = plan.MustSend();
  CHECK(third.ask);
  plan.Reply(third, STALE);
  const auto summary = plan.MustEnd();
  REQUIRE(summary.ok());
  CHECK(summary->accepted == 1);
  CHECK(summary->stale == 2);
  CHECK(summary->done);
}

TEST_CASE("An unknown outcome is asked about, and only what is missing is sent again") {
  for (const absl::Status& lost :
       {absl::UnavailableError("gone"), absl::DeadlineExceededError("slow")}) {
    Plan plan({90, 90, 90});
    plan.AddAll();
    plan.Fail(plan.MustSend(), lost);
    plan.Pause();
    const auto ask = plan.MustSend();
    CHECK(ask.ask);
    CHECK(ask.pieces.size() == 3);
    SECTION("it had arrived") {
      plan.ReplyEach(ask, {ACCEPTED, ACCEPTED, STALE});
      CHECK(plan.MustEnd()->accepted == 2);
    }
    SECTION("part of it is missing") {
      plan.ReplyEach(ask, {ACCEPTED, PENDING, STALE});
      const auto again = plan.MustSend();
      CHECK_FALSE(again.ask);
      plan.ReplyEach(again, {ACCEPTED, ACCEPTED, STALE});
      CHECK(plan.MustEnd()->accepted == 2);
      CHECK(plan.MustEnd()->stale == 1);
    }
    SECTION("the question is lost too") {
      plan.Fail(ask, lost);
      plan.Pause();
      CHECK(plan.MustSend().ask);
    }
  }
}

TEST_CASE("A refusal for want of memory is repeated without asking, earliest first, for ever") {
  Plan plan({200, 200});
  plan.AddAll();
  for (int i = 0; i < 100; ++i) {
    const auto first = plan.MustSend(), second = plan.MustSend();
    CHECK(first.message < second.message);
    CHECK_FALSE(first.ask);
    plan.Fail(second, absl::ResourceExhaustedError("full"));
    plan.Fail(first, absl::ResourceExhaustedError("full"));
    plan.Pause();
  }
  plan.Reply(plan.MustSend(), ACCEPTED);
  plan.Reply(plan.MustSend(), ACCEPTED);
  CHECK(plan.MustEnd()->accepted == 2);
}

TEST_CASE("Pauses grow to a second and start small again after a success") {
  Plan plan({200, 200});
  plan.AddAll();
  absl::Duration longest;
  for (int i = 0; i < 12; ++i) {
    const auto outgoing = plan.MustSend();
    plan.Fail(outgoing, absl::ResourceExhaustedError("full"));
    const absl::Duration before = *plan.plan().WakeAt();
    plan.Pause();
    longest = before;
  }
  plan.Reply(plan.MustSend(), ACCEPTED);
  plan.Fail(plan.MustSend(), absl::ResourceExhaustedError("full"));
  plan.Pause();
  CHECK(longest < kStart + absl::Seconds(12));
}

TEST_CASE("A ps that stays unreachable is given up after the patience") {
  Plan plan({200});
  plan.AddAll();
  int tries = 0;
  while (!plan.plan().Result().has_value()) {
    plan.Fail(plan.MustSend(), absl::UnavailableError("ps 1 (h:1) is not available"));
    ++tries;
    if (!plan.plan().Result().has_value()) plan.Pause();
  }
  CHECK(tries > 10);
  const absl::Status status = plan.MustEnd().status();
  CHECK(absl::IsUnavailable(status));
  CHECK(status.message() == "ps 1 (h:1) is not available (tried for 10s)");
}

TEST_CASE("An error that repeating cannot repair ends the gradient when nothing is in flight") {
  Plan plan({200, 200, 200});
  plan.plan().Add(Dense(0, 200));
  plan.plan().Add(Dense(1, 200));
  const auto first = plan.MustSend(), second = plan.MustSend();
  plan.Fail(first, absl::AbortedError("epoch 2"));
  CHECK_FALSE(plan.plan().Result().has_value());
  plan.Reply(second, ACCEPTED);
  CHECK_FALSE(plan.plan().Result().has_value());  // the caller is still adding
  plan.plan().Add(Dense(2, 200));
  CHECK_FALSE(plan.Next().has_value());
  CHECK(plan.MustEnd().status() == absl::AbortedError("epoch 2"));
}

TEST_CASE("What the ps acknowledged and lost is asked about and sent again, but not for ever") {
  Plan plan({800});
  plan.AddAll();
  plan.Reply(plan.MustSend(), PENDING);
  plan.Reply(plan.MustSend(), PENDING);
  int rounds = 0;
  while (!plan.plan().Result().has_value()) {
    plan.Pause();
    for (int i = 0; i < 2; ++i) {
      const auto ask = plan.MustSend();
      CHECK(ask.ask);
      plan.Reply(ask, PENDING);
      const auto again = plan.MustSend();
      CHECK_FALSE(again.ask);
      plan.Reply(again, PENDING);
    }
    ++rounds;
  }
  CHECK(rounds == 5);
  CHECK(plan.MustEnd().status().code() == absl::StatusCode::kInternal);
}

TEST_CASE("A reply that does not fit its message is an error") {
  Plan plan({200});
  plan.AddAll();
  plan.ReplyEach(plan.MustSend(), {ACCEPTED, ACCEPTED});
  CHECK(plan.MustEnd().status().code() == absl::StatusCode::kInternal);
}

TEST_CASE("a sparse gradient is its indices, then its values, and no index is cut") {
  const std::vector<int64_t> indices(30, 7);
  const std::vector<float> values(60, 1);
  SessionOptions options = Options();
  options.push_chunk_bytes = 99;  // 96 for a sparse gradient
  PushPlan plan(options, kStep, 2);
  const TensorView slices{DType::kFloat32, Shape({30, 2}), values.data()};
  const PushPlan::Variable sparse{VariableId(3), Shape({1000, 2}), slices, true, indices};
  CHECK(sparse.num_bytes() == 30 * 16);
  plan.Add(sparse);
  plan.Add({VariableId(4), Shape({1000, 2}), {DType::kFloat32, Shape({0, 2}), nullptr}, true, {}});
  uint64_t next = 0;
  for (int i = 0; i < 5; ++i) {
    const auto outgoing = plan.Next(kStart);
    REQUIRE(outgoing.has_value());
    REQUIRE(outgoing->pieces.size() == 1);
    CHECK(outgoing->pieces[0].offset == next);
    next += outgoing->pieces[0].size;
    CHECK(next % 8 == 0);
    PushReply reply;
    reply.add_outcomes()->set_verdict(i == 4 ? ACCEPTED : PENDING);
    plan.OnReply(outgoing->message, reply, kStart);
  }
  CHECK(next == sparse.num_bytes());
  const auto empty = plan.Next(kStart);  // counts too
  REQUIRE(empty.has_value());
  REQUIRE(empty->pieces.size() == 1);
  CHECK(empty->pieces[0].size == 0);

  std::vector<std::span<const std::byte>> spans;
  OutgoingTensor tensor{.values = sparse.values.bytes(), .row_indices = indices};
  tensor.offset = 232;
  tensor.size = 16;
  AppendBytes(tensor, &spans);
  REQUIRE(spans.size() == 2);
  CHECK(static_cast<const void*>(spans[0].data()) == &indices[29]);
  CHECK(spans[0].size() == 8);
  CHECK(static_cast<const void*>(spans[1].data()) == &values[0]);
  CHECK(spans[1].size() == 8);
  spans.clear();
  tensor.offset = 244;
  tensor.size = 4;
  AppendBytes(tensor, &spans);
  REQUIRE(spans.size() == 1);
  CHECK(static_cast<const void*>(spans[0].data()) == &values[1]);
}

TEST_CASE("A verdict that there is none of ends the gradient, with its number") {
  Plan plan({90, 90});
  plan.AddAll();
  plan.ReplyEach(plan.MustSend(), {ACCEPTED, static_cast<Verdict>(7)});
  const absl::Status status = plan.MustEnd().status();
  CHECK(absl::IsInternal(status));
  CHECK(status.message() == "variable 11: verdict 7, expected PENDING, ACCEPTED or STALE");
}

}  // namespace
}  // namespace lockstep
