// A session over a ps that loses requests and replies.
#include "common/client/shard_session.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <map>
#include <random>

#include "absl/synchronization/notification.h"
#include "tests/support/fake_ps_data.h"
#include "tests/support/thread_timer.h"

namespace lockstep {
namespace {

std::vector<Tensor> RandomTensors(const std::vector<int64_t>& sizes, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<Tensor> tensors;
  for (int64_t size : sizes) {
    tensors.emplace_back(DType::kUInt8, Shape({size}));
    for (uint8_t& byte : tensors.back().as<uint8_t>()) byte = static_cast<uint8_t>(random());
  }
  return tensors;
}

std::string BytesOf(const Tensor& tensor) {
  return std::string(static_cast<const char*>(tensor.data()), tensor.num_bytes());
}

GradientTensor Dense(size_t variable, const Tensor& gradient) {
  return {VariableId(static_cast<uint32_t>(variable)), gradient.shape(), gradient.view()};
}

// Keeps what was pushed, chunk by chunk, and judges a variable when it is whole.
class Store {
 public:
  PushReply Receive(const PushRequest& header, const std::string& payload) {
    PushReply reply;
    size_t at = 0;
    for (const PushPiece& piece : header.pieces()) {
      auto& chunks = chunks_[piece.variable()];
      if (!header.ask()) {
        chunks[piece.offset()] = payload.substr(at, piece.size());
        at += piece.size();
      }
      size_t have = 0;
      for (const auto& chunk : chunks) have += chunk.second.size();
      reply.add_outcomes()->set_verdict(have == static_cast<size_t>(piece.dims(0)) ? ACCEPTED
                                                                                   : PENDING);
    }
    CHECK(at == payload.size());
    return reply;
  }
  std::string Value(uint32_t variable) const {
    std::string value;
    for (const auto& chunk : chunks_.at(variable)) value += chunk.second;
    return value;
  }

 private:
  std::map<uint32_t, std::map<uint64_t, std::string>> chunks_;
};

const std::vector<int64_t> kSizes = {5000, 10, 1, 900, 3333, 64, 64, 2000};

TEST_CASE("Every byte of a gradient arrives though requests and replies are lost") {
  std::mt19937 random(11);
  Store store;
  int lost = 0;
  FakePsData ps;
  ps.on_push = [&](const PushRequest& header,
                   const std::string& payload) -> absl::StatusOr<PushReply> {
    CHECK(header.worker().worker() == 2);
    CHECK(header.push_seq() == 5);
    const int fate = lost < 7 ? static_cast<int>(random() % 5) : 4;
    if (fate < 3) ++lost;
    if (fate == 0) return absl::UnavailableError("request lost");
    if (fate == 1) return absl::ResourceExhaustedError("full");
    PushReply reply = store.Receive(header, payload);
    if (fate == 2) return absl::DeadlineExceededError("reply lost");
    return reply;
  };
  SessionOptions options;
  options.identity.set_worker(2);
  options.push_chunk_bytes = 512;
  options.bucket_bytes = 100;
  const std::vector<Tensor> gradients = RandomTensors(kSizes, 1);
  absl::StatusOr<PushSummary> summary;
  absl::Notification over;
  ThreadTimer timer;
  ShardSession session(options, &ps, &timer);
  session.BeginGradient(PushSeq(5), GlobalStep(3), static_cast<int>(gradients.size()));
  for (size_t i = 0; i < gradients.size(); ++i) session.Add(Dense(i, gradients[i]));
  session.EndStep(DequeueSeq(), [&](absl::StatusOr<PushSummary> result) {
    summary = std::move(result);
    over.Notify();
  });
  over.WaitForNotification();
  REQUIRE(summary.ok());
  CHECK(summary->accepted == gradients.size());
  CHECK(lost == 7);
  for (size_t i = 0; i < gradients.size(); ++i)
    CHECK(store.Value(static_cast<uint32_t>(i)) == BytesOf(gradients[i]));
}

TEST_CASE("A sparse gradient arrives as indices and values, with the shape of its variable") {
  std::vector<int64_t> indices(100);
  for (size_t i = 0; i < indices.size(); ++i) indices[i] = static_cast<int64_t>(3 * i);
  const Tensor values = std::move(RandomTensors({400}, 9)[0]);
  const TensorView slices{DType::kFloat32, Shape({100, 1}), values.data()};
  std::string arrived;
  FakePsData ps;
  ps.on_push = [&](const PushRequest& header, const std::string& payload) {
    REQUIRE(header.pieces_size() == 1);
    CHECK(header.pieces(0).rows() == 100);
    CHECK(header.pieces(0).dims(0) == 5000);
    CHECK(header.pieces(0).dims(1) == 1);
    arrived.resize(std::max<size_t>(arrived.size(), header.pieces(0).offset() + payload.size()));
    arrived.replace(header.pieces(0).offset(), payload.size(), payload);
    PushReply reply;
    reply.add_outcomes()->set_verdict(arrived.size() == 1200 ? ACCEPTED : PENDING);
    return reply;
  };
  SessionOptions options;
  options.push_chunk_bytes = 300;
  options.bucket_bytes = 100;
  ThreadTimer timer;
  ShardSession session(options, &ps, &timer);
  absl::Notification over;
  absl::StatusOr<PushSummary> summary;
  session.BeginGradient(PushSeq(1), GlobalStep(0), 1);
  session.Add({.id = VariableId(0),
               .shape = Shape({5000, 1}),
               .values = slices,
               .is_sparse = true,
               .indices = indices});
  session.EndStep(DequeueSeq(), [&](absl::StatusOr<PushSummary> result) {
    summary = std::move(result);
    over.Notify();
  });
  over.WaitForNotification();
  REQUIRE(summary.ok());
  CHECK(summary->accepted == 1);
  CHECK(arrived ==
        std::string(reinterpret_cast<const char*>(indices.data()), 800) + BytesOf(values));
}

TEST_CASE("A session sends one gradient after another, also from within the callback") {
  FakePsData ps;
  int pushes = 0;
  ps.on_push = [&](const PushRequest& header, const std::string&) -> absl::StatusOr<PushReply> {
    ++pushes;
    PushReply reply;
    for (int i = 0; i < header.pieces_size(); ++i) reply.add_outcomes()->set_verdict(STALE);
    return reply;
  };
  ThreadTimer timer;
  ShardSession session({}, &ps, &timer);
  const Tensor gradient = Tensor::Zeros(DType::kFloat32, Shape({4}));
  uint32_t stale = 0;
  std::function<void(uint64_t)> push = [&](uint64_t seq) {
    session.BeginGradient(PushSeq(seq), GlobalStep(0), 1);
    session.Add(Dense(0, gradient));
    session.EndStep(DequeueSeq(), [&, seq](absl::StatusOr<PushSummary> summary) {
      stale += summary->stale;
      if (seq < 50) push(seq + 1);
    });
  };
  push(1);
  CHECK(stale == 50);
  CHECK(pushes == 50);
}

TEST_CASE("A gradient of no variables is done at once") {
  FakePsData ps;
  ThreadTimer timer;
  ShardSession session({}, &ps, &timer);
  bool called = false;
  session.BeginGradient(PushSeq(1), GlobalStep(0), 0);
  session.EndStep(DequeueSeq(), [&](absl::StatusOr<PushSummary> summary) {
    called = true;
    CHECK(summary.ok());
  });
  CHECK(called);
}

TEST_CASE("A session that is cancelled, or goes, between two attempts says so") {
  FakePsData ps;
  ps.on_push = [](const PushRequest&, const std::string&) {
    return absl::UnavailableError("gone");
  };
  ps.on_pull = [](const PullRequest&) { return absl::UnavailableError("gone"); };
  ps.on_dequeue = [](const DequeueTokenRequest&) { return absl::UnavailableError("gone"); };
  const Tensor gradient = Tensor::Zeros(DType::kFloat32, Shape({4}));
  Tensor value = Tensor::Zeros(DType::kFloat32, Shape({4}));
  for (const bool is_cancelled : {false, true}) {
    std::vector<absl::Status> told;
    {
      ThreadTimer timer;
      const ManualClock stopped;
      ShardSession session({}, &ps, &timer, &stopped);
      session.SetTargets({{VariableId(0), value.view()}});
      session.BeginGradient(PushSeq(1), GlobalStep(0), 1);
      session.Add(Dense(0, gradient));
      session.EndStep(DequeueSeq(), [&](absl::StatusOr<PushSummary> summary) {
        told.push_back(summary.status());
      });
      session.Fetch(GlobalStep(1), FetchKind::kPresent,
                    [&](absl::StatusOr<GlobalStep> version) { told.push_back(version.status()); });
      session.DequeueToken(
          DequeueSeq(1), GlobalStep(0),
          [&](absl::StatusOr<DequeueTokenReply> token) { told.push_back(token.status()); });
      if (is_cancelled) session.Cancel();
    }
    REQUIRE(told.size() == 3);
    for (const absl::Status& status : told) CHECK(absl::IsCancelled(status));
  }
}

// Answers pulls from `values`, all of `version`.
absl::StatusOr<std::unique_ptr<PulledValues>> Serve(const std::vector<Tensor>& values,
                                                    int64_t version, const PullRequest& request) {
  PullReply header;
  header.set_version(version);
  std::string payload;
  for (const PullPiece& piece : request.pieces()) {
    *header.add_pieces() = piece;
    payload += BytesOf(values[piece.variable()]).substr(piece.offset(), piece.size());
  }
  return std::make_unique<PulledValues>(std::move(header), std::move(payload));
}

struct Fetched {
  std::vector<Tensor> values;
  absl::StatusOr<GlobalStep> version = absl::UnknownError("not called");
};

Fetched Fetch(PsData* ps, GlobalStep version) {
  Fetched fetched{.values = RandomTensors(kSizes, 99)};
  std::vector<FetchTarget> targets;
  for (size_t i = 0; i < fetched.values.size(); ++i)
    targets.push_back({VariableId(static_cast<uint32_t>(i)), fetched.values[i].view()});
  SessionOptions options;
  options.fetch_chunk_bytes = 700;
  ThreadTimer timer;
  ShardSession session(options, ps, &timer);
  session.SetTargets(std::move(targets));
  absl::Notification over;
  session.Fetch(version, FetchKind::kPresent, [&](absl::StatusOr<GlobalStep> got) {
    fetched.version = std::move(got);
    over.Notify();
  });
  over.WaitForNotification();
  return fetched;
}

TEST_CASE("All values are fetched though requests are lost") {
  const std::vector<Tensor> values = RandomTensors(kSizes, 2);
  std::mt19937 random(12);
  int lost = 0;
  FakePsData ps;
  ps.on_pull = [&](const PullRequest& request) -> absl::StatusOr<std::unique_ptr<PulledValues>> {
    if (lost < 4 && random() % 2 == 0) {
      ++lost;
      return lost % 2 == 0 ? absl::UnavailableError("lost") : absl::DeadlineExceededError("parked");
    }
    return Serve(values, request.version(), request);
  };
  const Fetched fetched = Fetch(&ps, GlobalStep(4));
  REQUIRE(fetched.version.ok());
  CHECK(*fetched.version == GlobalStep(4));
  CHECK(lost == 4);
  for (size_t i = 0; i < values.size(); ++i)
    CHECK(BytesOf(fetched.values[i]) == BytesOf(values[i]));
}

TEST_CASE("When the version goes while it is fetched, all values are those of the newer one") {
  const std::vector<Tensor> old_values = RandomTensors(kSizes, 3);
  const std::vector<Tensor> new_values = RandomTensors(kSizes, 4);
  int calls = 0;
  FakePsData ps;
  ps.on_pull = [&](const PullRequest& request) {
    return ++calls > 5 ? Serve(new_values, 8, request) : Serve(old_values, 7, request);
  };
  const Fetched fetched = Fetch(&ps, GlobalStep(7));
  REQUIRE(fetched.version.ok());
  CHECK(*fetched.version == GlobalStep(8));
  for (size_t i = 0; i < new_values.size(); ++i)
    CHECK(BytesOf(fetched.values[i]) == BytesOf(new_values[i]));
}

// A table of 1000 rows of three bytes, row r being {r, r + 1, r + 2} of `version`.
absl::StatusOr<std::unique_ptr<PulledValues>> ServeRows(int64_t version,
                                                        const PullRequest& request) {
  PullReply header;
  header.set_version(version);
  std::string payload;
  for (const PullPiece& piece : request.pieces()) {
    CHECK(piece.offset() == 0);
    CHECK(piece.size() == 0);
    PullPiece* answer = header.add_pieces();
    answer->set_variable(piece.variable());
    answer->set_size(static_cast<uint64_t>(piece.rows_size()) * 3);
    for (const int64_t row : piece.rows()) {
      for (int i = 0; i < 3; ++i) payload.push_back(static_cast<char>(version + row + i));
    }
  }
  return std::make_unique<PulledValues>(std::move(header), std::move(payload));
}

TEST_CASE("Rows are fetched alone, other ones each time, and chunk by chunk") {
  FakePsData ps;
  int requests = 0;
  int64_t rows_asked_for = 0;
  ps.on_pull = [&](const PullRequest& request) -> absl::StatusOr<std::unique_ptr<PulledValues>> {
    if (++requests % 3 == 0) return absl::UnavailableError("lost");
    for (const PullPiece& piece : request.pieces()) rows_asked_for += piece.rows_size();
    return ServeRows(request.version(), request);
  };
  SessionOptions options;
  options.fetch_chunk_bytes = 110;  // ten rows with their indices
  ThreadTimer timer;
  ShardSession session(options, &ps, &timer);
  session.SetTargets({{VariableId(4), {DType::kUInt8, Shape({0, 3}), nullptr}}});
  for (const std::vector<int64_t>& rows :
       {std::vector<int64_t>{5}, {}, {999, 0, 999, 7}, std::vector<int64_t>(25, 17)}) {
    Tensor values(DType::kUInt8, Shape({static_cast<int64_t>(rows.size()), 3}));
    session.SetTarget(0, values.view(), rows);
    requests = 0;
    rows_asked_for = 0;
    absl::Notification over;
    absl::StatusOr<GlobalStep> version;
    session.Fetch(GlobalStep(6), FetchKind::kPresent, [&](absl::StatusOr<GlobalStep> got) {
      version = std::move(got);
      over.Notify();
    });
    over.WaitForNotification();
    REQUIRE(version.ok());
    CHECK(*version == GlobalStep(6));
    CHECK(rows_asked_for == static_cast<int64_t>(rows.size()));
    CHECK(requests == static_cast<int>((rows.size() + 9) / 10 + requests / 3));
    std::vector<uint8_t> expected;
    for (const int64_t row : rows) {
      for (int i = 0; i < 3; ++i) expected.push_back(static_cast<uint8_t>(6 + row + i));
    }
    CHECK(BytesOf(values) == std::string(expected.begin(), expected.end()));
  }
}

TEST_CASE("Fewer rows than were asked for are refused") {
  FakePsData ps;
  ps.on_pull = [](PullRequest request) {
    request.mutable_pieces(0)->mutable_rows()->RemoveLast();
    return ServeRows(1, request);
  };
  const std::vector<int64_t> rows = {1, 2};
  Tensor values(DType::kUInt8, Shape({2, 3}));
  ThreadTimer timer;
  ShardSession session({}, &ps, &timer);
  session.SetTargets({{VariableId(4), values.view(), rows}});
  absl::Status status;
  session.Fetch(GlobalStep(1), FetchKind::kPresent,
                [&](absl::StatusOr<GlobalStep> got) { status = got.status(); });
  CHECK_FALSE(status.ok());
}

TEST_CASE("Values that were not asked for are refused") {
  const std::vector<Tensor> values = RandomTensors(kSizes, 5);
  FakePsData ps;
  ps.on_pull = [&](const PullRequest& request) {
    PullRequest other = request;
    other.mutable_pieces(0)->set_offset(1);
    other.mutable_pieces(0)->set_size(1);
    return Serve(values, request.version(), other);
  };
  CHECK(Fetch(&ps, GlobalStep(1)).version.status().code() == absl::StatusCode::kInternal);
}

}  // namespace
}  // namespace lockstep
