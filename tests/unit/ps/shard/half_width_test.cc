// Gradients that come and values that leave in half the width, around float32 sums and values.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstring>
#include <limits>
#include <span>
#include <vector>

#include "absl/strings/match.h"
#include "common/tensor/half_copy.h"
#include "tests/support/rounded.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps::test {
namespace {

using lockstep::test::Narrowed;
using lockstep::test::Rounded;

constexpr DType kTypes[] = {DType::kBFloat16, DType::kFloat16};
// Not one of them is a half.
const std::vector<float> kGradient = {1.001f, -2.003f, 3.1f, 1e-5f, 4.007f};
const std::vector<float> kOther = {0.3f, 7.77f, -3.3f, 2e-5f, 5.05f};
const Shape kShape({5});

CreateVariablesRequest Vector(uint32_t total, uint32_t aggregate) {
  return PlanOf(PlacementOf({{"w", {5}}}), total, aggregate);
}

// Bytes [offset, offset + size) of a gradient of `type`.
Message Halves(uint32_t worker, const std::vector<float>& values, DType type, uint64_t offset = 0,
               std::optional<uint64_t> size = {}, int64_t step = 0) {
  Message message(IdentityOf(worker), static_cast<uint64_t>(step) + 1, step);
  const std::vector<uint16_t> halves = Narrowed(values, type);
  const std::span<const std::byte> bytes = std::as_bytes(std::span(halves)).subspan(offset);
  const auto piece = bytes.first(size.value_or(bytes.size()));
  message.arguments().pieces.push_back({VariableId(0), type, kShape, offset, piece.size()});
  message.payload().assign(piece.begin(), piece.end());
  return message;
}

Reply<PullResult> PullAs(Harness* h, DType type, int64_t version, std::vector<PullPiece> pieces,
                         bool averages = false) {
  Reply<PullResult> reply;
  h->shard.Pull({.worker = IdentityOf(0),
                 .version = GlobalStep(version),
                 .pieces = std::move(pieces),
                 .averages = averages,
                 .wire_type = type},
                reply.done());
  return reply;
}

std::vector<uint16_t> HalvesOf(const PulledPiece& piece) {
  std::vector<uint16_t> halves(piece.bytes.size() / sizeof(uint16_t));
  std::memcpy(halves.data(), piece.bytes.data(), piece.bytes.size());
  return halves;
}

// A step of the vector from zeros with these gradients, as float32.
std::vector<float> StepWith(const std::vector<std::vector<float>>& gradients) {
  Harness h(Vector(2, 2));
  h.Grant(0, 2, 0.5f);
  for (uint32_t worker = 0; worker < gradients.size(); ++worker) {
    h.Push(worker, 1, 0, 0, gradients[worker]);
  }
  return h.Read(1, 0);
}

TEST_CASE(
    "gradients in half the width take half the room and count as the same numbers in float32") {
  for (const DType type : kTypes) {
    CAPTURE(Name(type));
    Harness h(Vector(2, 2));
    h.Grant(0, 2, 0.5f);
    REQUIRE(h.shard.Push(Halves(1, kOther, type).Ready()).ok());
    CHECK(h.shard.Report().held_bytes == 10);
    REQUIRE(h.shard.Push(Halves(0, kGradient, type).Ready()).ok());
    CHECK(h.shard.Report().held_bytes == 0);
    CHECK(h.Read(1, 0) == StepWith({Rounded(kGradient, type), Rounded(kOther, type)}));
  }
}

TEST_CASE("replicas may send one variable in different widths") {
  for (const DType type : kTypes) {
    Harness h(Vector(2, 2));
    h.Grant(0, 2, 0.5f);
    REQUIRE(h.shard.Push(Halves(1, kOther, type).Ready()).ok());
    CHECK(h.Push(0, 1, 0, 0, kGradient) == PushStatus::kAccepted);
    CHECK(h.Read(1, 0) == StepWith({kGradient, Rounded(kOther, type)}));
  }
}

TEST_CASE("chunks in half the width come in any order, repeated and cut through elements") {
  Harness h(Vector(1, 1));
  h.Grant(0, 1, 0.5f);
  const auto push = [&](uint64_t offset, uint64_t size) {
    const auto result = h.shard.Push(Halves(0, kGradient, DType::kBFloat16, offset, size).Ready(1));
    REQUIRE(result.ok());
    return result->statuses[0];
  };
  CHECK(push(7, 3) == PushStatus::kPending);
  CHECK(push(0, 3) == PushStatus::kPending);
  CHECK(push(7, 3) == PushStatus::kPending);
  CHECK(push(3, 4) == PushStatus::kAccepted);
  CHECK(push(0, 10) == PushStatus::kAccepted);
  const std::vector<float> rounded = Rounded(kGradient, DType::kBFloat16);
  CHECK(h.Read(1, 0) == StepWith({rounded, rounded}));
}

TEST_CASE("what is malformed in half the width is refused, naming the variable") {
  Harness h(Vector(1, 1));
  const auto refusal = [&](Message message) {
    const absl::Status status = h.shard.Push(message.Ready()).status();
    CHECK(absl::IsInvalidArgument(status));
    return std::string(status.message());
  };
  Message beyond = Halves(0, kGradient, DType::kFloat16);
  beyond.arguments().pieces[0].size = 20;
  CHECK(absl::StrContains(refusal(beyond), "\"w\" (0): expected bytes in [0, 10), got 20 bytes"));
  REQUIRE(h.shard.Push(Halves(0, kGradient, DType::kFloat16, 0, 4).Ready()).ok());
  CHECK(absl::StrContains(refusal(Halves(0, kGradient, DType::kBFloat16, 4, 6)),
                          "\"w\" (0): a chunk of push 1 of worker 0 is of bfloat16, an earlier one "
                          "was of float16"));

  CreateVariablesRequest plan = PlanOf(PlacementOf({{"table", {5}, 0, true, 0, true}}), 1, 1);
  Harness sparse(plan);
  const absl::Status status =
      sparse.shard.Push(Halves(0, kGradient, DType::kFloat16).Ready()).status();
  CHECK(absl::StrContains(status.message(), "expected dtype float32, got float16"));
  plan = Vector(1, 1);
  plan.mutable_placement()->mutable_variables(0)->set_dtype(FLOAT64);
  Harness wide(plan);
  CHECK(absl::StrContains(
      wide.shard.Push(Halves(0, kGradient, DType::kFloat16).Ready()).status().message(),
      "expected dtype float64, got float16"));
}

TEST_CASE("an overflow of float16 counts as infinite, or is refused where such values are") {
  std::vector<float> gradient = kGradient;
  gradient[3] = 70000;
  Harness h(Vector(1, 1));
  h.Grant(0, 1, 1.0f);
  REQUIRE(h.shard.Push(Halves(0, gradient, DType::kFloat16).Ready()).ok());
  CHECK(h.Read(1, 0)[3] == -std::numeric_limits<float>::infinity());

  CreateVariablesRequest plan = Vector(1, 1);
  plan.set_non_finite(REFUSE_NON_FINITE);
  Harness strict(plan);
  const absl::Status refused =
      strict.shard.Push(Halves(0, gradient, DType::kFloat16).Ready(3)).status();
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(absl::StrContains(refused.message(),
                          "\"w\" (0): element 3 of the gradient: expected a "
                          "finite value, got inf"));
  CHECK(strict.shard.Push(Halves(0, gradient, DType::kBFloat16).Ready(3)).ok());
  gradient[3] = std::numeric_limits<float>::quiet_NaN();
  CHECK_FALSE(strict.shard.Push(Halves(0, gradient, DType::kBFloat16).Ready()).ok());
}

TEST_CASE("a gradient in half the width is held where the worker wrote it, too") {
  Harness h(Vector(2, 2));
  h.Grant(0, 2, 0.5f);
  const auto memory = std::make_shared<Tensor>(DType::kBFloat16, kShape);
  Narrow(kGradient, DType::kBFloat16, memory->data());
  Message message = Halves(0, kGradient, DType::kBFloat16);
  PushArguments arguments = message.arguments();
  arguments.tensors = Borrowed({std::as_const(*memory).view().bytes()}, memory);
  REQUIRE(h.shard.Push(arguments).ok());
  CHECK(h.shard.Report().held_bytes == 0);
  REQUIRE(h.shard.Push(Halves(1, kOther, DType::kBFloat16).Ready()).ok());
  CHECK(h.Read(1, 0) ==
        StepWith({Rounded(kGradient, DType::kBFloat16), Rounded(kOther, DType::kBFloat16)}));
}

TEST_CASE("values leave rounded, made once for all who pull them, and stay float32 themselves") {
  for (const DType type : kTypes) {
    CAPTURE(Name(type));
    Harness h(Vector(1, 1));
    CHECK(HalvesOf(PullAs(&h, type, 0, {{VariableId(0)}})->pieces[0]) ==
          std::vector<uint16_t>(5, 0));
    for (int64_t step = 0; step < 4; ++step) {
      // One waits for the value, another comes when it is there.
      const auto early = PullAs(&h, type, step + 1, {{VariableId(0)}});
      CHECK(early.IsParked());
      h.Grant(step, 1, 0.5f);
      h.Push(0, step + 1, step, 0, kGradient);
      const auto late = PullAs(&h, type, step + 1, {{VariableId(0), 4, 6}});
      REQUIRE_FALSE(early.IsParked());
      REQUIRE_FALSE(late.IsParked());
      const std::vector<float> value = h.Read(step + 1, 0);
      CHECK(HalvesOf(early->pieces[0]) == Narrowed(value, type));
      CHECK(early->pieces[0].bytes.data() + 4 == late->pieces[0].bytes.data());
      CHECK(late->pieces[0].offset == 4);
      CHECK(late->pieces[0].bytes.size() == 6);
      if (step > 0) CHECK(value != Rounded(value, type));
    }
  }
}

TEST_CASE("what was pulled in half the width stays as it is while steps go on") {
  Harness h(Vector(1, 1));
  const auto zeros = PullAs(&h, DType::kFloat16, 0, {{VariableId(0)}});
  const auto first = PullAs(&h, DType::kFloat16, 1, {{VariableId(0)}});
  std::vector<uint16_t> expected;
  for (int64_t step = 0; step < 6; ++step) {
    h.Grant(step, 1, 0.5f);
    h.Push(0, step + 1, step, 0, kGradient);
    if (step == 0) expected = Narrowed(h.Read(1, 0), DType::kFloat16);
    PullAs(&h, step % 2 == 0 ? DType::kFloat16 : DType::kBFloat16, step + 1, {{VariableId(0)}});
  }
  CHECK(HalvesOf(zeros->pieces[0]) == std::vector<uint16_t>(5, 0));
  CHECK(HalvesOf(first->pieces[0]) == expected);
}

TEST_CASE("only dense float32 values are pulled in half the width: others come as they are") {
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"w", {2}, 0, true, 1.001f},
                                                    {"table", {2, 1}, 0, true, 1.001f, true},
                                                    {"double", {2}, 0, true, 1.001f},
                                                    {"still", {2}, 0, true, 1.001f, false, true},
                                                    {"mean", {2}, 0, false, 1.001f}}),
                                       1, 1);
  plan.mutable_placement()->mutable_variables(2)->set_dtype(FLOAT64);
  Harness h(plan);
  std::vector<PullPiece> pieces;
  for (uint32_t i = 0; i < 5; ++i) pieces.push_back({VariableId(i)});
  pieces[1].rows = {1};
  const auto pulled = PullAs(&h, DType::kBFloat16, 0, pieces);
  REQUIRE_FALSE(pulled.IsParked());
  REQUIRE(pulled.status().ok());
  const size_t sizes[] = {4, 4, 16, 4, 4};
  for (size_t i = 0; i < 5; ++i) CHECK(pulled->pieces[i].bytes.size() == sizes[i]);
  CHECK(ValuesOf(pulled->pieces[1]) == std::vector<float>{1.001f});
  for (const size_t i : {0, 3, 4}) {
    CHECK(HalvesOf(pulled->pieces[i]) == Narrowed({1.001f, 1.001f}, DType::kBFloat16));
  }
  const absl::Status beyond = PullAs(&h, DType::kBFloat16, 0, {{VariableId(0), 2, 4}}).status();
  CHECK(absl::StrContains(beyond.message(), "expected bytes in [0, 4), got 4 bytes from offset 2"));
  const absl::Status integers = PullAs(&h, DType::kInt32, 0, {{VariableId(0)}}).status();
  CHECK(absl::StrContains(integers.message(), "expected float32, bfloat16 or float16, got int32"));
}

TEST_CASE("kept values and averages are pulled in half the width, too") {
  CreateVariablesRequest plan = Vector(1, 1);
  plan.mutable_optimizer()->mutable_variable_averages()->set_decay(0.5f);
  Harness h(plan);
  h.Grant({.command = kCommand, .step = GlobalStep(0), .learning_rate = 0.5f, .keep_values = true});
  h.Push(0, 1, 0, 0, kGradient);
  const std::vector<float> kept = h.Read(1, 0);
  for (int64_t step = 1; step < 5; ++step) {
    h.Grant(step, 1, 0.5f);
    h.Push(0, step + 1, step, 0, kGradient);
  }
  CHECK(HalvesOf(PullAs(&h, DType::kFloat16, 1, {{VariableId(0)}})->pieces[0]) ==
        Narrowed(kept, DType::kFloat16));
  Reply<PullResult> wide;
  h.shard.Pull({.worker = IdentityOf(0),
                .version = GlobalStep(1),
                .pieces = {{VariableId(0)}},
                .averages = true},
               wide.done());
  CHECK(HalvesOf(PullAs(&h, DType::kFloat16, 1, {{VariableId(0)}}, true)->pieces[0]) ==
        Narrowed(ValuesOf(wide->pieces[0]), DType::kFloat16));
  CHECK(ValuesOf(wide->pieces[0]) != kept);
  // In pieces that are cut inside elements, too.
  const std::vector<uint16_t> narrow = Narrowed(ValuesOf(wide->pieces[0]), DType::kFloat16);
  const auto bytes = std::as_bytes(std::span(narrow));
  for (uint64_t begin = 0; begin < bytes.size(); ++begin) {
    for (uint64_t size = 1; size <= bytes.size() - begin; ++size) {
      const auto part = PullAs(&h, DType::kFloat16, 1, {{VariableId(0), begin, size}}, true);
      CHECK(std::ranges::equal(part->pieces[0].bytes, bytes.subspan(begin, size)));
    }
  }
}

}  // namespace
}  // namespace lockstep::ps::test
