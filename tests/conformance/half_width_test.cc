// Gradients and values in half the width, over every implementation.
#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "common/tensor/half_copy.h"
#include "common/tensor_proto/convert.h"
#include "tests/conformance/ps_under_test.h"
#include "tests/conformance/small_job.h"
#include "tests/support/await.h"
#include "tests/support/rounded.h"

namespace lockstep {
namespace {

using Values = std::unique_ptr<PulledValues>;
using test::Narrowed;
using test::Rounded;

// More than one slice of gRPC's, so that its cuts go through elements.
constexpr int64_t kElements = 100'001;

std::vector<float> Gradient(uint32_t worker) {
  std::vector<float> values(kElements);
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = 1.0f / static_cast<float>(i % 997 + worker + 3);
  }
  return values;
}

std::unique_ptr<PsUnderTest> InitializedPs(const PsImplementation& implementation) {
  std::unique_ptr<PsUnderTest> ps = implementation.make();
  const auto control = ps->NewControl();
  REQUIRE(CallAndWait(*control, kSetView, TwoWorkers()).ok());
  REQUIRE(CallAndWait(*control, kCreateVariables, Variables({kElements})).ok());
  return ps;
}

void PushInHalf(PsData* data, uint32_t worker, DType type) {
  const std::vector<uint16_t> halves = Narrowed(Gradient(worker), type);
  PushRequest push = PushOf(worker, 0, 0, kElements, 0, 0);
  push.mutable_pieces(0)->set_dtype(ToProto(type));
  push.mutable_pieces(0)->set_size(halves.size() * sizeof(uint16_t));
  const auto reply = Await<PushReply>(
      [&](auto done) { data->Push(push, {std::as_bytes(std::span(halves))}, std::move(done)); });
  REQUIRE(reply.ok());
  CHECK(reply->outcomes(0).verdict() == ACCEPTED);
}

TEST_CASE("Half the width both ways: sums and values are float32, what is pulled is rounded") {
  const PsImplementation implementation = GENERATE(from_range(AllPs()));
  const DType type = GENERATE(DType::kBFloat16, DType::kFloat16);
  CAPTURE(implementation.name, Name(type));
  const auto ps = InitializedPs(implementation);
  const auto control = ps->NewControl();
  const auto data = ps->NewData();
  PullRequest pull = PullOf(1, 1, 0);
  pull.set_wire_type(ToProto(type));
  Answer<Values> parked;
  data->Pull(pull, parked.done());
  Answer<GrantReply> closed;
  control->Call(kGrant, Granted(0), closed.done());
  for (uint32_t worker : {0, 1}) PushInHalf(data.get(), worker, type);
  REQUIRE(closed.Wait().ok());

  const std::vector<float> first = Rounded(Gradient(0), type), second = Rounded(Gradient(1), type);
  std::vector<float> expected(kElements);
  for (size_t i = 0; i < expected.size(); ++i) {
    expected[i] = 1 - (first[i] + second[i]) / 2 * kLearningRate;
  }
  const auto wide = Await<Values>([&](auto done) { data->Pull(PullOf(0, 1, 0), std::move(done)); });
  REQUIRE(wide.ok());
  std::vector<float> values(kElements);
  const std::vector<std::span<std::byte>> targets = {std::as_writable_bytes(std::span(values))};
  REQUIRE((*wide)->CopyTo(targets).ok());
  CHECK(values == expected);

  const auto narrow = parked.Wait();
  REQUIRE(narrow.ok());
  CHECK((*narrow)->header().version() == 1);
  CHECK((*narrow)->header().pieces(0).size() == 2 * kElements);
  const std::vector<std::span<float>> elements = {values};
  REQUIRE((*narrow)->WidenTo(type, elements).ok());
  CHECK(values == Rounded(expected, type));
  const std::vector<std::span<float>> fewer = {std::span(values).first(5)};
  CHECK(absl::IsInvalidArgument((*narrow)->WidenTo(type, fewer)));
}

TEST_CASE("A type that nothing is pulled as is refused") {
  const auto ps = InitializedPs(GENERATE(from_range(AllPs())));
  const auto data = ps->NewData();
  for (const int type : {static_cast<int>(INT32), 77}) {
    PullRequest pull = PullOf(0, 0, 0);
    pull.set_wire_type(static_cast<DataType>(type));
    const absl::Status status =
        Await<Values>([&](auto done) { data->Pull(pull, std::move(done)); }).status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK(absl::StrContains(status.message(), "wire_type"));
  }
}

TEST_CASE("Whether memory is exchanged is told before the first tensor, and stays so") {
  const PsImplementation implementation = GENERATE(from_range(AllPs()));
  CAPTURE(implementation.name);
  const auto ps = InitializedPs(implementation);
  const auto data = ps->NewData();
  CHECK_FALSE(data->SharesMemory());
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto shares =
        Await<bool>([&](auto done) { data->ShareMemory(Worker(0), std::move(done)); });
    REQUIRE(shares.ok());
    CHECK(*shares == implementation.shares_memory);
    CHECK(data->SharesMemory() == implementation.shares_memory);
  }
}

TEST_CASE("A ps that cannot be asked for its memory is asked again") {
  const auto data = MakePsData({.address = "127.0.0.1:1", .name = "ps 0"});
  const auto never = Await<bool>([&](auto done) { data->ShareMemory(Worker(0), std::move(done)); });
  REQUIRE(never.ok());  // there is nothing to exchange
  CHECK_FALSE(*never);
  auto memory = GradientMemory::Create(4096);
  REQUIRE(memory.ok());
  const auto sharing = MakePsData({.address = "127.0.0.1:1", .name = "ps 0"}, memory->get());
  for (int repeat = 0; repeat < 2; ++repeat) {
    const auto asked =
        Await<bool>([&](auto done) { sharing->ShareMemory(Worker(0), std::move(done)); });
    CHECK(absl::IsUnavailable(asked.status()));
  }
  CHECK_FALSE(sharing->SharesMemory());
}

}  // namespace
}  // namespace lockstep
