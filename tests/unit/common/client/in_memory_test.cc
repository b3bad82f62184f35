// Plans and sessions where the ps sees the worker's gradients and shows its values.
#include <algorithm>
#include <catch2/catch.hpp>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "common/client/fetch_plan.h"
#include "common/client/push_plan.h"
#include "common/client/shard_session.h"
#include "common/rpc/limits.h"
#include "tests/support/ps_data.h"
#include "tests/support/thread_timer.h"

namespace lockstep {
namespace {

constexpr absl::Duration kStart = absl::Seconds(100);

PushPlan::Variable Gradient(uint32_t id, int64_t bytes, bool by_reference) {
  const Shape shape({bytes});
  return {
      {.id = VariableId(id), .shape = shape, .values = TensorView{DType::kUInt8, shape, nullptr}},
      by_reference};
}

SessionOptions SmallMessages() {
  SessionOptions options;
  options.push_chunk_bytes = 400;
  options.bucket_bytes = 100;
  options.window = 2;
  return options;
}

std::vector<std::vector<uint64_t>> PiecesOf(const PushPlan::Outgoing& outgoing) {
  std::vector<std::vector<uint64_t>> pieces;
  for (const PushPlan::Piece& piece : outgoing.pieces) {
    pieces.push_back({piece.variable, piece.offset, piece.size});
  }
  return pieces;
}

TEST_CASE("Gradients in memory go whole, and those that wait for the window go together") {
  PushPlan plan(SmallMessages(), GlobalStep(7), 5);
  plan.Add(Gradient(0, 5000, true));
  const auto first = plan.Next(kStart);
  REQUIRE(first.has_value());
  CHECK(first->by_reference);
  CHECK(PiecesOf(*first) == std::vector<std::vector<uint64_t>>{{0, 0, 5000}});
  plan.Add(Gradient(1, 10, true));
  plan.Add(Gradient(2, 900, false));
  plan.Add(Gradient(3, 8000, true));
  const auto second = plan.Next(kStart);
  REQUIRE(second.has_value());
  CHECK(second->by_reference);
  CHECK(PiecesOf(*second) == std::vector<std::vector<uint64_t>>{{1, 0, 10}, {3, 0, 8000}});
  CHECK_FALSE(plan.Next(kStart).has_value());
  PushReply reply;
  reply.add_outcomes()->set_verdict(ACCEPTED);
  plan.OnReply(first->message, reply, kStart);
  const auto third = plan.Next(kStart);
  REQUIRE(third.has_value());
  CHECK_FALSE(third->by_reference);
  CHECK(PiecesOf(*third) == std::vector<std::vector<uint64_t>>{{2, 0, 400}});
}

TEST_CASE("Small gradients in memory wait for company, but never beyond the last variable") {
  PushPlan plan(SmallMessages(), GlobalStep(7), 6);
  plan.Add(Gradient(0, 40, true));
  plan.Add(Gradient(1, 60, true));
  CHECK_FALSE(plan.Next(kStart).has_value());
  plan.Add(Gradient(2, 1, true));
  const auto full = plan.Next(kStart);
  REQUIRE(full.has_value());
  CHECK(PiecesOf(*full) == std::vector<std::vector<uint64_t>>{{0, 0, 40}, {1, 0, 60}, {2, 0, 1}});
  plan.Add(Gradient(3, 10, true));
  plan.Add(Gradient(4, 10, true));
  CHECK_FALSE(plan.Next(kStart).has_value());
  plan.Add(Gradient(5, 10, false));
  const auto last = plan.Next(kStart);
  REQUIRE(last.has_value());
  CHECK(PiecesOf(*last) == std::vector<std::vector<uint64_t>>{{3, 0, 10}, {4, 0, 10}});
}

TEST_CASE("A message names no more gradients in memory than it may, and the next ones the rest") {
  SessionOptions options;
  options.most_references = 3;
  PushPlan plan(options, GlobalStep(7), 7);
  for (uint32_t id = 0; id < 7; ++id) plan.Add(Gradient(id, 5000, true));
  std::vector<size_t> sent;
  while (const auto outgoing = plan.Next(kStart)) {
    CHECK(outgoing->by_reference);
    CHECK(outgoing->pieces.front().variable == 3 * sent.size());
    sent.push_back(outgoing->pieces.size());
  }
  CHECK(sent == std::vector<size_t>{3, 3, 1});
}

TEST_CASE("What a ps does not see after all is sent as bytes, in chunks") {
  PushPlan plan(SmallMessages(), GlobalStep(7), 2);
  plan.Add(Gradient(0, 900, true));
  plan.Add(Gradient(1, 60, true));
  const auto refused = plan.Next(kStart);
  REQUIRE(refused.has_value());
  plan.OnError(refused->message, absl::NotFoundError("what memory?"), kStart);
  std::vector<std::vector<uint64_t>> sent;
  while (const auto outgoing = plan.Next(kStart)) {
    CHECK_FALSE(outgoing->by_reference);
    PushReply reply;
    for (const auto& piece : PiecesOf(*outgoing)) {
      sent.push_back(piece);
      reply.add_outcomes()->set_verdict(piece[1] == 800 || piece[0] == 1 ? ACCEPTED : PENDING);
    }
    plan.OnReply(outgoing->message, reply, kStart);
  }
  CHECK(sent ==
        std::vector<std::vector<uint64_t>>{{0, 0, 400}, {0, 400, 400}, {0, 800, 100}, {1, 0, 60}});
  const auto result = plan.Result();
  REQUIRE((result.has_value() && result->ok()));
  CHECK((*result)->accepted == 2);
}

TEST_CASE("NOT_FOUND for bytes ends the gradient: it was not about memory") {
  PushPlan plan(SmallMessages(), GlobalStep(7), 1);
  plan.Add(Gradient(0, 60, false));
  const auto outgoing = plan.Next(kStart);
  plan.OnError(outgoing->message, absl::NotFoundError("no such thing"), kStart);
  REQUIRE(plan.Result().has_value());
  CHECK(absl::IsNotFound(plan.Result()->status()));
}

TEST_CASE(
    "After an unknown outcome a gradient in memory is asked about, then pushed again from there") {
  PushPlan plan(SmallMessages(), GlobalStep(7), 1);
  plan.Add(Gradient(0, 5000, true));
  const auto lost = plan.Next(kStart);
  plan.OnError(lost->message, absl::UnavailableError("gone"), kStart);
  const absl::Duration later = kStart + absl::Seconds(5);
  const auto question = plan.Next(later);
  REQUIRE(question.has_value());
  CHECK(question->ask);
  PushReply pending;
  pending.add_outcomes()->set_verdict(PENDING);
  plan.OnReply(question->message, pending, later);
  const auto again = plan.Next(later);
  REQUIRE(again.has_value());
  CHECK_FALSE(again->ask);
  CHECK(again->by_reference);
}

TEST_CASE("Values that were written over are pulled again, in the end as bytes") {
  SessionOptions options;
  options.fetch_chunk_bytes = 100;
  options.shared_chunk_bytes = 1000;
  FetchPlan plan(options);
  const std::vector<FetchPlan::Extent> targets = {{.units = 700, .may_be_reference = true},
                                                  {.units = 200, .may_be_reference = true},
                                                  {.units = 50}};
  plan.Start(GlobalStep(3), targets, FetchKind::kPresent);
  REQUIRE(plan.num_requests() == 2);
  CHECK(plan.pieces(0).size() == 2);
  for (int time = 0; time < 2; ++time) {
    const auto outgoing = plan.Next(kStart);
    REQUIRE(outgoing.has_value());
    CHECK(outgoing->request == 0);
    CHECK(outgoing->by_reference);
    plan.OnOverwritten(0);
  }
  const auto bytes = plan.Next(kStart);
  CHECK_FALSE(bytes->by_reference);
  CHECK(plan.Next(kStart)->request == 1);
  plan.OnReply(0, GlobalStep(3));
  plan.OnReply(1, GlobalStep(3));
  CHECK(plan.Result().has_value());
  plan.Start(GlobalStep(4), targets, FetchKind::kPresent);
  CHECK(plan.Next(kStart)->by_reference);
}

TEST_CASE("What stays in the ps's memory is asked for at once, whatever its size") {
  SessionOptions options;
  options.fetch_chunk_bytes = 100;
  options.shared_chunk_bytes = 1000;
  FetchPlan plan(options);
  const FetchPlan::Extent stays{.units = 70'000, .may_be_reference = true, .stays = true};
  const FetchPlan::Extent is_copied{.units = 1500, .may_be_reference = true};
  plan.Start(GlobalStep(3), std::vector{stays, is_copied, stays, stays}, FetchKind::kAhead);
  std::vector<std::vector<uint64_t>> pieces;
  while (const auto outgoing = plan.Next(kStart)) {
    CHECK(outgoing->by_reference);
    for (const auto& [target, first, count] : plan.pieces(outgoing->request)) {
      pieces.push_back({outgoing->request, target, first, count});
    }
  }
  CHECK(pieces == std::vector<std::vector<uint64_t>>{{0, 0, 0, 70'000},
                                                     {0, 2, 0, 70'000},
                                                     {0, 3, 0, 70'000},
                                                     {1, 1, 0, 1000},
                                                     {2, 1, 1000, 500}});
}

// A ps that shows its values, each byte of which is its variable's number plus the version.
class ShowingPs final : public PsData {
 public:
  explicit ShowingPs(const std::vector<size_t>& sizes) {
    for (const size_t size : sizes) values_.emplace_back(size);
  }
  void Push(const PushRequest&, std::vector<std::span<const std::byte>>,
            Callback<PushReply>) override {
    FAIL("nobody pushes");
  }
  void Pull(const PullRequest& request, Callback<std::unique_ptr<PulledValues>> done) override {
    ++pulls;
    const bool shows = request.in_memory() && !hides(pulls);
    uint64_t bytes = 0;
    for (const PullPiece& piece : request.pieces()) bytes += piece.size();
    if (!shows && bytes > most_bytes) return done(absl::OutOfRangeError("too much for a message"));
    PullReply header;
    header.set_version(request.version());
    std::vector<ReceivedTensors::Reference> shown;
    std::string copied;
    for (const PullPiece& piece : request.pieces()) {
      std::vector<std::byte>& value = values_[piece.variable()];
      const auto byte = static_cast<std::byte>(piece.variable() + request.version());
      std::fill(value.begin(), value.end(), byte);
      *header.add_pieces() = piece;
      shown.push_back({std::span(value).subspan(piece.offset(), piece.size()), piece.size()});
      copied.append(piece.size(), static_cast<char>(byte));
    }
    if (!shows) {
      return done(std::make_unique<PulledValues>(std::move(header), std::move(copied)));
    }
    const auto check = [overwritten = overwrites(pulls)] {
      return overwritten ? absl::AbortedError("written over") : absl::OkStatus();
    };
    done(std::make_unique<PulledValues>(std::move(header),
                                        ReceivedTensors(std::move(shown), nullptr, check)));
  }
  void DequeueToken(const DequeueTokenRequest&, Callback<DequeueTokenReply>) override {}
  void Cancel() override {}
  bool ReceivesByReference() const override { return shares; }

  const std::byte* Memory(size_t variable) const { return values_[variable].data(); }

  bool shares = true;
  uint64_t most_bytes = 1000;  // of an answer
  int pulls = 0;
  std::function<bool(int)> hides = [](int) { return false; };
  std::function<bool(int)> overwrites = [](int) { return false; };

 private:
  std::vector<std::vector<std::byte>> values_;
};

// Two variables, the first larger than a request, fetched from a ps that shows them.
class Fetching {
 public:
  explicit Fetching(bool in_place) {
    SessionOptions options;
    options.fetch_chunk_bytes = 100;
    options.shared_chunk_bytes = 400;
    std::vector<FetchTarget> targets;
    for (uint32_t i = 0; i < 2; ++i) {
      targets.push_back({VariableId(i), memory_[i].view(), {}, in_place});
    }
    session_ = std::make_unique<ShardSession>(options, &ps, &timer_);
    session_->SetTargets(std::move(targets));
  }
  void Fetch(int64_t version) {
    absl::StatusOr<GlobalStep> got;
    session_->Fetch(GlobalStep(version), FetchKind::kPresent,
                    [&](absl::StatusOr<GlobalStep> result) { got = result; });
    REQUIRE(got.ok());
    CHECK(*got == GlobalStep(version));
    for (size_t i = 0; i < 2; ++i) {
      const auto* const value = static_cast<const std::byte*>(session_->Value(i));
      const auto expected = static_cast<std::byte>(i + version);
      CHECK(std::all_of(value, value + memory_[i].num_bytes(),
                        [&](std::byte byte) { return byte == expected; }));
    }
  }
  bool IsInPlace(size_t target) const { return session_->Value(target) == ps.Memory(target); }

  ShowingPs ps{{1000, 30}};

 private:
  std::vector<Tensor> MakeMemory() {
    std::vector<Tensor> memory;
    memory.push_back(Tensor::Zeros(DType::kUInt8, Shape({1000})));
    memory.push_back(Tensor::Zeros(DType::kUInt8, Shape({30})));
    return memory;
  }
  std::vector<Tensor> memory_ = MakeMemory();
  ThreadTimer timer_;
  std::unique_ptr<ShardSession> session_;
};

TEST_CASE("Values in the ps's memory are copied from there, or stay there") {
  Fetching copying(false), looking(true);
  for (const int64_t version : {1, 2}) {
    copying.Fetch(version);
    looking.Fetch(version);
    for (const size_t target : {0, 1}) {
      CHECK_FALSE(copying.IsInPlace(target));
      CHECK(looking.IsInPlace(target));
    }
  }
  CHECK(copying.ps.pulls == 6);
  CHECK(looking.ps.pulls == 2);
  looking.ps.shares = false;
  looking.Fetch(3);
  CHECK_FALSE(looking.IsInPlace(0));
}

TEST_CASE(
    "Values that the ps does not show come as bytes, in pieces if they are too much for one") {
  for (const uint64_t most_bytes : {100, 2000}) {
    Fetching looking(true);
    looking.ps.most_bytes = most_bytes;
    looking.ps.hides = [](int pull) { return pull == 1; };
    looking.Fetch(1);
    CHECK(looking.ps.pulls == (most_bytes == 100 ? 1 + 11 : 1));
    CHECK_FALSE(looking.IsInPlace(0));
    looking.Fetch(2);
    CHECK(looking.IsInPlace(0));
  }
}

TEST_CASE("Values that were written over while they were copied are fetched again") {
  Fetching copying(false);
  copying.ps.overwrites = [](int pull) { return pull <= 4; };
  copying.Fetch(1);
  CHECK(copying.ps.pulls > 4);
}

// Of a table whose rows have a byte each; nobody reads it.
PushPlan::Variable RowsInMemory(uint32_t id, int64_t rows) {
  const Shape shape({rows, 1});
  return {{.id = VariableId(id),
           .shape = shape,
           .values = TensorView{DType::kUInt8, shape, nullptr},
           .is_sparse = true,
           .indices = {nullptr, static_cast<size_t>(rows)}},
          /*by_reference=*/true};
}

TEST_CASE("Row indices of tables in memory are divided so that each message can be sent") {
  constexpr int64_t kRows = 600'000;
  PushPlan plan(SessionOptions(), GlobalStep(7), 5);
  for (uint32_t table = 0; table < 5; ++table) plan.Add(RowsInMemory(table, kRows));
  size_t sent = 0;
  while (const auto outgoing = plan.Next(kStart)) {
    CHECK(outgoing->by_reference);
    CHECK(outgoing->pieces.size() * kRows * sizeof(int64_t) < rpc::kMaxMessageBytes);
    sent += outgoing->pieces.size();
    PushReply reply;
    for (size_t i = 0; i < outgoing->pieces.size(); ++i) {
      reply.add_outcomes()->set_verdict(ACCEPTED);
    }
    plan.OnReply(outgoing->message, reply, kStart);
  }
  CHECK(sent == 5);
  CHECK(plan.Result().has_value());
}

TEST_CASE("A table in memory with more row indices than a message takes is sent as bytes") {
  PushPlan plan(SessionOptions(), GlobalStep(7), 2);
  constexpr int64_t kRows = 3'000'000;
  plan.Add(RowsInMemory(0, kRows));
  plan.Add(Gradient(1, 5000, true));
  uint64_t sent = 0;
  int by_reference = 0;
  while (const auto outgoing = plan.Next(kStart)) {
    by_reference += outgoing->by_reference ? 1 : 0;
    PushReply reply;
    for (const PushPlan::Piece& piece : outgoing->pieces) {
      if (piece.variable == 0) {
        CHECK(piece.offset == sent);
        CHECK(piece.size <= SessionOptions().push_chunk_bytes);
        sent += piece.size;
      }
      const bool is_whole = piece.variable == 1 || sent == kRows * 9;
      reply.add_outcomes()->set_verdict(is_whole ? ACCEPTED : PENDING);
    }
    plan.OnReply(outgoing->message, reply, kStart);
  }
  CHECK(sent == kRows * 9);
  CHECK(by_reference == 1);
  REQUIRE(plan.Result().has_value());
  CHECK((*plan.Result())->accepted == 2);
}

}  // namespace
}  // namespace lockstep
