// Gradients and values that travel in half the width.
#include <catch2/catch.hpp>
#include <map>
#include <random>
#include <set>

#include "absl/synchronization/notification.h"
#include "common/client/shard_session.h"
#include "common/tensor/half_copy.h"
#include "common/tensor_proto/convert.h"
#include "tests/support/fake_ps_data.h"
#include "tests/support/thread_timer.h"

namespace lockstep {
namespace {

const std::vector<int64_t> kSizes = {5000, 10, 1, 0, 900, 3333, 64, 2000};

Tensor RandomFloats(int64_t size, std::mt19937* random) {
  std::uniform_real_distribution<float> ordinary(-3, 3);
  Tensor tensor(DType::kFloat32, Shape({size}));
  for (float& element : tensor.as<float>()) element = ordinary(*random);
  return tensor;
}

std::string BytesOf(const Tensor& tensor) {
  return std::string(static_cast<const char*>(tensor.data()), tensor.num_bytes());
}

std::string NarrowBytes(const Tensor& tensor, DType type) {
  std::string bytes(static_cast<size_t>(tensor.num_elements()) * SizeOf(type), '?');
  Narrow(tensor.as<float>(), type, bytes.data());
  return bytes;
}

// What arrived, by variable and offset; a piece that comes again must be the same.
struct Arrived {
  PushReply Receive(const PushRequest& header, const std::string& payload) {
    PushReply reply;
    size_t at = 0;
    for (const PushPiece& piece : header.pieces()) {
      types[piece.variable()] = piece.dtype();
      std::map<uint64_t, std::string>& chunks = pieces[piece.variable()];
      if (!header.ask()) {
        const std::string bytes = payload.substr(at, piece.size());
        const auto [chunk, is_new] = chunks.emplace(piece.offset(), bytes);
        if (!is_new) CHECK(chunk->second == bytes);
        at += piece.size();
      }
      const DType type = *FromProto(piece.dtype());
      const uint64_t values = static_cast<uint64_t>(piece.dims(0)) * SizeOf(type);
      const uint64_t whole = piece.rows() > 0 ? static_cast<uint64_t>(piece.rows()) * 12 : values;
      reply.add_outcomes()->set_verdict(Value(piece.variable()).size() == whole ? ACCEPTED
                                                                                : PENDING);
    }
    CHECK(at == payload.size());
    return reply;
  }
  std::string Value(uint32_t variable) const {
    std::string value;
    for (const auto& chunk : pieces.at(variable)) value += chunk.second;
    return value;
  }

  std::map<uint32_t, DataType> types;
  std::map<uint32_t, std::map<uint64_t, std::string>> pieces;
};

SessionOptions SmallMessages(DType wire_type) {
  SessionOptions options;
  options.push_chunk_bytes = 511;
  options.bucket_bytes = 100;
  options.wire_dtype = wire_type;
  return options;
}

// Pushes all of it, with a statistic and a sparse gradient behind.
void PushAll(PsData* ps, DType wire_type, const std::vector<Tensor>& gradients,
             const Tensor& statistic, const std::vector<int64_t>& rows, const Tensor& slices) {
  ThreadTimer timer;
  ShardSession session(SmallMessages(wire_type), ps, &timer);
  absl::Notification over;
  const auto count = static_cast<uint32_t>(gradients.size());
  session.BeginGradient(PushSeq(1), GlobalStep(0), static_cast<int>(count) + 2);
  for (uint32_t i = 0; i < count; ++i) {
    session.Add({VariableId(i), gradients[i].shape(), gradients[i].view()});
  }
  session.Add({.id = VariableId(count),
               .shape = statistic.shape(),
               .values = statistic.view(),
               .is_statistic = true});
  session.Add(
      {.id = VariableId(count + 1),
       .shape = Shape({1000, 1}),
       .values = {DType::kFloat32, Shape({static_cast<int64_t>(rows.size()), 1}), slices.data()},
       .is_sparse = true,
       .indices = rows});
  session.EndStep(DequeueSeq(), [&](absl::StatusOr<PushSummary> summary) {
    CHECK(summary.ok());
    over.Notify();
  });
  over.WaitForNotification();
}

TEST_CASE("Trained gradients arrive rounded, the same bits whenever they are sent again") {
  for (const DType type : {DType::kBFloat16, DType::kFloat16}) {
    for (const bool shares_memory : {false, true}) {
      CAPTURE(Name(type), shares_memory);
      std::mt19937 random(4);
      std::vector<Tensor> gradients;
      for (const int64_t size : kSizes) gradients.push_back(RandomFloats(size, &random));
      const Tensor statistic = RandomFloats(3, &random);
      const std::vector<int64_t> rows = {3, 5, 900};
      const Tensor slices = RandomFloats(3, &random);
      Arrived arrived;
      int lost = 0;
      FakePsData ps;
      ps.shares_memory = shares_memory;
      ps.on_push = [&](const PushRequest& header,
                       const std::string& payload) -> absl::StatusOr<PushReply> {
        const int fate = lost < 9 ? static_cast<int>(random() % 4) : 3;
        if (fate < 3) ++lost;
        if (fate == 0) return absl::UnavailableError("request lost");
        if (fate == 1) return absl::ResourceExhaustedError("full");
        PushReply reply = arrived.Receive(header, payload);
        if (fate == 2) return absl::DeadlineExceededError("reply lost");
        return reply;
      };
      PushAll(&ps, type, gradients, statistic, rows, slices);
      CHECK(lost == 9);
      const uint32_t count = static_cast<uint32_t>(gradients.size());
      for (uint32_t i = 0; i < count; ++i) {
        CHECK(arrived.types[i] == (shares_memory ? FLOAT32 : ToProto(type)));
        CHECK(arrived.Value(i) ==
              (shares_memory ? BytesOf(gradients[i]) : NarrowBytes(gradients[i], type)));
      }
      CHECK(arrived.types[count] == FLOAT32);
      CHECK(arrived.Value(count) == BytesOf(statistic));
      CHECK(arrived.types[count + 1] == FLOAT32);
      CHECK(arrived.Value(count + 1).substr(24) == BytesOf(slices));
    }
  }
}

TEST_CASE("What the ps sees where it is keeps its type, also if calls move to a ps that rounds") {
  // One ps has answered whether it sees the gradient, the next one whether it may be rounded.
  FakePsData ps;
  ps.sees_gradients = true;
  REQUIRE(ps.MayRound());
  GradientMessages gradient(SmallMessages(DType::kBFloat16), &ps);
  gradient.Begin(PushSeq(1), GlobalStep(0), 1);
  const Tensor values(DType::kFloat32, Shape({5}));
  gradient.Add({VariableId(0), values.shape(), values.view()});
  const std::optional<PushCall> push = gradient.Next(absl::ZeroDuration());
  REQUIRE(push.has_value());
  CHECK(push->header->pieces(0).dtype() == FLOAT32);
  CHECK(push->header->pieces(0).size() == values.num_bytes());
  REQUIRE(push->tensors.size() == 1);
  CHECK(push->tensors[0].by_reference);
  CHECK_FALSE(push->tensors[0].rounded_to.has_value());
}

// Variable i has values[i]; dense float32 ones come as the request wants them.
absl::StatusOr<std::unique_ptr<PulledValues>> Serve(const std::vector<Tensor>& values,
                                                    const PullRequest& request) {
  PullReply header;
  header.set_version(request.version());
  std::string payload;
  for (const PullPiece& piece : request.pieces()) {
    const Tensor& value = values[piece.variable()];
    const bool is_narrow = request.wire_type() != DATA_TYPE_UNSPECIFIED;
    if (is_narrow) REQUIRE(value.dtype() == DType::kFloat32);
    const std::string bytes =
        is_narrow ? NarrowBytes(value, *FromProto(request.wire_type())) : BytesOf(value);
    *header.add_pieces() = piece;
    payload += bytes.substr(piece.offset(), piece.size());
  }
  return std::make_unique<PulledValues>(std::move(header), std::move(payload));
}

TEST_CASE(
    "Dense float32 values are fetched rounded, and others, and in shared memory, as they are") {
  for (const DType type : {DType::kBFloat16, DType::kFloat16}) {
    for (const bool shares_memory : {false, true}) {
      CAPTURE(Name(type), shares_memory);
      std::mt19937 random(8);
      std::vector<Tensor> values, fetched;
      for (const int64_t size : kSizes) values.push_back(RandomFloats(size, &random));
      values.emplace_back(DType::kFloat64, Shape({70}));
      for (double& element : values.back().as<double>()) element = 1.0 / 3;
      const size_t statistic = values.size();
      values.push_back(RandomFloats(30, &random));
      std::vector<FetchTarget> targets;
      fetched.reserve(values.size());
      for (const Tensor& value : values) {
        fetched.push_back(Tensor::Zeros(value.dtype(), value.shape()));
        targets.push_back(
            {VariableId(static_cast<uint32_t>(targets.size())), fetched.back().view()});
      }
      targets[statistic].is_statistic = true;
      int lost = 0;
      std::set<DataType> types;
      FakePsData ps;
      ps.shares_memory = shares_memory;
      ps.on_pull =
          [&](const PullRequest& request) -> absl::StatusOr<std::unique_ptr<PulledValues>> {
        if (lost < 4 && random() % 2 == 0) {
          ++lost;
          return absl::UnavailableError("lost");
        }
        types.insert(request.wire_type());
        return Serve(values, request);
      };
      SessionOptions options;
      options.fetch_chunk_bytes = 701;
      options.wire_dtype = type;
      ThreadTimer timer;
      ShardSession session(options, &ps, &timer);
      session.SetTargets(targets);
      absl::Notification over;
      session.Fetch(GlobalStep(4), FetchKind::kPresent, [&](absl::StatusOr<GlobalStep> version) {
        CHECK(version.ok());
        over.Notify();
      });
      over.WaitForNotification();
      CHECK(lost == 4);
      CHECK(types == (shares_memory ? std::set<DataType>{DATA_TYPE_UNSPECIFIED}
                                    : std::set<DataType>{DATA_TYPE_UNSPECIFIED, ToProto(type)}));
      for (size_t i = 0; i < values.size(); ++i) {
        if (!shares_memory && values[i].dtype() == DType::kFloat32 && i != statistic) {
          Widen(type, NarrowBytes(values[i], type).data(), values[i].as<float>());
        }
        CHECK(BytesOf(fetched[i]) == BytesOf(values[i]));
      }
    }
  }
}

}  // namespace
}  // namespace lockstep
