// What a primary sends its copy, when it has done so, and what becomes of lost messages.
#include "ps/copy/copy_sender.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/lost_variables.h"
#include "common/base/running_clock.h"
#include "tests/unit/ps/copy/fake_copy.h"

namespace lockstep::ps {
namespace {

using test::FakeCopy;

constexpr int64_t kFloatsPerMessage = (4 << 20) / sizeof(float);

// A primary that sends the mean of step after step, and what it is told.
struct Primary {
  explicit Primary(bool counts_standstill = true) {
    const Clock* const clock = counts_standstill ? static_cast<const Clock*>(&time) : &running;
    auto transport = std::make_unique<FakeCopy>();
    copy = transport.get();
    CopyTargetOptions options{
        .address = "copy:1",
        .shard = ShardIndex(0),
        .identity = {.job = 7,
                     .epoch = Epoch(1),
                     .worker = kPrimaryOfCopy.worker,
                     .incarnation = kPrimaryOfCopy.incarnation},
        .refused = [this](const absl::Status& status) { refused.push_back(status); }};
    sender = std::make_unique<CopySender>(options, MeanMemory(nullptr), std::move(transport),
                                          std::make_unique<test::ForwardingTimer>(&time), clock);
  }
  ~Primary() { sender->Close(); }

  // Of one variable; the answer's place in `answers`.
  size_t Send(int64_t step, uint32_t variable = 0, int64_t floats = 2) {
    const Shape shape({floats});
    const MutableTensorView mean = sender->MeanOf(VariableId(variable), DType::kFloat32, shape);
    const size_t place = answers.size();
    answers.emplace_back();
    sender->Send({GlobalStep(step), 0.5f, {{VariableId(variable), shape, mean}}},
                 [this, place](const absl::Status& status) {
                   CHECK_FALSE(answers[place].has_value());
                   answers[place] = status;
                 });
    return place;
  }
  bool IsTaken(size_t place) const { return answers[place] == absl::OkStatus(); }
  bool IsWaiting(size_t place) const { return !answers[place].has_value(); }

  test::ManualTime time;
  RunningClock running{&time};
  FakeCopy* copy;
  std::vector<std::optional<absl::Status>> answers;
  std::vector<absl::Status> refused;
  std::unique_ptr<CopySender> sender;
};

TEST_CASE("a mean is a push of the only worker of the copy, with its learning rate") {
  Primary primary;
  const size_t mean = primary.Send(3);
  REQUIRE(primary.copy->calls.size() == 1);
  const PushRequest& push = primary.copy->calls[0].header;
  CHECK(push.worker().job() == 7);
  CHECK(push.worker().incarnation() == kPrimaryOfCopy.incarnation.value());
  // Beyond those of a primary before, which has closed the steps before.
  CHECK(push.push_seq() == 4);
  CHECK(push.local_step() == 3);
  CHECK(push.mean_learning_rate() == 0.5f);
  CHECK(primary.IsWaiting(mean));
  primary.copy->Answer(0, ACCEPTED, 3);
  CHECK(primary.IsTaken(mean));

  primary.Send(4);
  CHECK(primary.copy->calls[1].header.push_seq() == 5);
}

TEST_CASE("a mean waits until the memory that the copy reads is there") {
  Primary primary;
  primary.sender->Hold();
  const size_t mean = primary.Send(3);
  primary.time.Advance(absl::Seconds(30));
  CHECK(primary.copy->num_opened == 0);
  CHECK(primary.sender->Silence() == absl::ZeroDuration());
  primary.sender->SetReady();
  REQUIRE(primary.copy->calls.size() == 1);
  primary.copy->Answer(0, ACCEPTED, 3);
  CHECK(primary.IsTaken(mean));
}

TEST_CASE("a step without gradients is a push without pieces, taken when the copy is past it") {
  Primary primary;
  std::optional<absl::Status> answer;
  primary.sender->Send({GlobalStep(3), 0.5f, {}},
                       [&](const absl::Status& status) { answer = status; });
  REQUIRE(primary.copy->calls.size() == 1);
  const PushRequest& push = primary.copy->calls[0].header;
  CHECK(push.pieces().empty());
  CHECK(push.local_step() == 3);
  CHECK(push.mean_learning_rate() == 0.5f);
  primary.copy->Answer(0, ACCEPTED, 3);
  CHECK_FALSE(answer.has_value());
  primary.time.Advance(absl::Seconds(1));
  REQUIRE(primary.copy->calls.size() == 2);
  primary.copy->Answer(1, ACCEPTED, 4);
  CHECK(answer == absl::OkStatus());
}

TEST_CASE("a message has the means of the same gradients, and says of which") {
  Primary primary;
  const CountedPush first{WorkerIndex(0), Incarnation(10), PushSeq(7)};
  const CountedPush second{WorkerIndex(1), Incarnation(11), PushSeq(8)};
  StepMeans means{GlobalStep(3), 0.5f, {}, 42};
  const std::vector<std::vector<CountedPush>> mean_of = {
      {first, second}, {first, second}, {second}, {first, second}};
  for (uint32_t variable = 0; variable < mean_of.size(); ++variable) {
    const Shape shape({2});
    means.gradients.push_back({VariableId(variable),
                               shape,
                               primary.sender->MeanOf(VariableId(variable), DType::kFloat32, shape),
                               {},
                               mean_of[variable]});
  }
  primary.sender->Send(means, [](const absl::Status&) {});
  REQUIRE(primary.copy->calls.size() == 3);
  const PushRequest& both = primary.copy->calls[0].header;
  CHECK(both.pieces_size() == 2);
  CHECK(both.stale() == 42);
  REQUIRE(both.mean_of_size() == 2);
  CHECK(both.mean_of(1).worker() == 1);
  CHECK(both.mean_of(1).incarnation() == 11);
  CHECK(both.mean_of(1).push_seq() == 8);
  CHECK(primary.copy->calls[1].header.mean_of_size() == 1);
  CHECK(primary.copy->calls[2].header.pieces(0).variable() == 3);
  for (size_t call = 0; call < 3; ++call) primary.copy->Answer(call, ACCEPTED, 3);
}

TEST_CASE("means that are published apart are taken apart, under one number") {
  Primary primary;
  const size_t first = primary.Send(0, 0);
  const size_t second = primary.Send(0, 1);
  CHECK(primary.copy->calls[1].header.push_seq() == primary.copy->calls[0].header.push_seq());
  primary.copy->Answer(1, ACCEPTED, 0);
  CHECK(primary.IsTaken(second));
  CHECK(primary.IsWaiting(first));
  primary.copy->Answer(0, ACCEPTED, 0);
  CHECK(primary.IsTaken(first));
}

TEST_CASE("a large mean goes in chunks, and is taken with the last of them") {
  Primary primary;
  const size_t mean = primary.Send(0, 0, kFloatsPerMessage + 1);
  REQUIRE(primary.copy->calls.size() == 2);
  CHECK(primary.copy->calls[1].header.pieces(0).size() == sizeof(float));
  CHECK(primary.copy->calls[1].header.pieces(0).offset() == uint64_t{4} << 20);
  primary.copy->Answer(1, PENDING, 0);
  CHECK(primary.IsWaiting(mean));
  primary.copy->Answer(0, ACCEPTED, 0);
  CHECK(primary.IsTaken(mean));
}

TEST_CASE("8 MiB are under way at a time, the others wait for the first answers") {
  constexpr size_t kMost = 2;
  Primary primary;
  const size_t large = primary.Send(0, 0, kFloatsPerMessage * (kMost + 2));
  const size_t small = primary.Send(0, 1);
  CHECK(primary.copy->calls.size() == kMost);
  for (size_t i = 0; i < kMost + 2; ++i) {
    const bool is_last = i == kMost + 1;
    primary.copy->Answer(i, is_last ? ACCEPTED : PENDING, 0);
    CHECK(primary.copy->calls.size() == std::min(kMost + 1 + i, kMost + 3));
  }
  CHECK(primary.IsTaken(large));
  primary.copy->Fail(kMost + 2, absl::UnavailableError("connection lost"));
  primary.time.Advance(absl::Milliseconds(5));
  REQUIRE(primary.copy->calls.size() == kMost + 4);
  primary.copy->Answer(kMost + 3, ACCEPTED, 1);
  CHECK(primary.IsTaken(small));
}

TEST_CASE("16 messages are under way at a time, however small") {
  constexpr uint32_t kMost = 16;
  Primary primary;
  for (uint32_t variable = 0; variable < kMost + 2; ++variable) primary.Send(0, variable);
  CHECK(primary.copy->calls.size() == kMost);
  primary.copy->Answer(0, ACCEPTED, 0);
  CHECK(primary.copy->calls.size() == kMost + 1);
}

TEST_CASE("what the copy reads in place is under way without bytes") {
  Primary primary;
  primary.copy->is_shared = true;
  for (uint32_t variable = 0; variable < 3; ++variable) {
    primary.Send(0, variable, kFloatsPerMessage * 3);
  }
  CHECK(primary.copy->calls.size() == 3);
}

TEST_CASE("a push whose reply is lost is sent again until the copy has passed its step") {
  Primary primary;
  const size_t mean = primary.Send(0);
  primary.copy->Fail(0, absl::UnavailableError("connection lost"));
  CHECK(primary.copy->calls.size() == 1);
  primary.time.Advance(absl::Milliseconds(5));
  REQUIRE(primary.copy->calls.size() == 2);
  CHECK(primary.copy->calls[1].header.push_seq() == 1);
  CHECK(primary.copy->calls[1].tensors.size() == 1);

  // The first one may still be under way, and reads the mean.
  primary.copy->Answer(1, ACCEPTED, 0);
  CHECK(primary.IsWaiting(mean));
  primary.time.Advance(absl::Milliseconds(200));
  REQUIRE(primary.copy->calls.size() == 3);
  CHECK(primary.copy->calls[2].header.ask());
  CHECK(primary.copy->calls[2].tensors.empty());
  primary.copy->Answer(2, ACCEPTED, 1);
  CHECK(primary.IsTaken(mean));
  CHECK(primary.refused.empty());
}

TEST_CASE("a mean that waits at the copy for the step before is asked for") {
  Primary primary;
  const size_t mean = primary.Send(1);
  primary.copy->Answer(0, ACCEPTED, 0);
  CHECK(primary.IsWaiting(mean));
  primary.time.Advance(absl::Milliseconds(5));
  REQUIRE(primary.copy->calls.size() == 2);
  CHECK(primary.copy->calls[1].header.ask());
  primary.copy->Answer(1, ACCEPTED, 2);
  CHECK(primary.IsTaken(mean));
}

TEST_CASE("a copy that has lost what came is sent all of it again") {
  Primary primary;
  const size_t mean = primary.Send(0, 0, kFloatsPerMessage * 2);
  primary.copy->Answer(0, PENDING, 0);
  primary.copy->Answer(1, PENDING, 0);
  CHECK(primary.IsWaiting(mean));
  primary.time.Advance(absl::Milliseconds(5));
  REQUIRE(primary.copy->calls.size() == 4);
  for (const size_t again : {2u, 3u}) {
    CHECK_FALSE(primary.copy->calls[again].header.ask());
    CHECK(primary.copy->calls[again].tensors.size() == 1);
    primary.copy->Answer(again, ACCEPTED, 1);
  }
  CHECK(primary.IsTaken(mean));
}

TEST_CASE("a copy that is past the step without the mean refuses its primary, once") {
  Primary primary;
  const size_t first = primary.Send(0, 0);
  const size_t second = primary.Send(0, 1);
  primary.copy->Answer(0, STALE, 1);
  REQUIRE(primary.refused.size() == 1);
  CHECK(absl::IsAborted(primary.refused[0]));
  CHECK(absl::StrContains(primary.refused[0].message(), "the copy is at step 1"));
  CHECK(primary.answers[first] == primary.refused[0]);
  CHECK(primary.answers[second] == primary.refused[0]);
  CHECK(primary.answers[primary.Send(1)] == primary.refused[0]);
}

TEST_CASE("an error that no repetition mends refuses the primary") {
  Primary primary;
  const size_t mean = primary.Send(0);
  primary.copy->Fail(0, absl::AbortedError("this shard serves workers"));
  REQUIRE(primary.refused.size() == 1);
  CHECK(primary.answers[mean] == absl::AbortedError("this shard serves workers"));
  primary.time.Advance(absl::Seconds(1));
  CHECK(primary.copy->calls.size() == 1);
}

TEST_CASE("a copy that was started again does not serve in place of its primary") {
  Primary primary;
  primary.Send(0);
  // What the copy says, and what clients make of it.
  primary.copy->Fail(
      0, GENERATE(NoVariablesError("no chief has called it"), LostVariablesError("the copy")));
  CHECK(primary.refused.empty());
  primary.time.Advance(absl::Seconds(1));
  CHECK(primary.copy->calls.size() == 2);
}

TEST_CASE("a shard that goes on alone has nothing to wait for") {
  Primary primary;
  const size_t in_flight = primary.Send(0, 0);
  const size_t failed = primary.Send(0, 1);
  primary.copy->Fail(1, absl::UnavailableError("connection lost"));
  primary.sender->End(absl::OkStatus());
  CHECK(primary.IsTaken(in_flight));
  CHECK(primary.IsTaken(failed));
  CHECK(primary.IsTaken(primary.Send(1)));
  primary.time.Advance(absl::Seconds(1));
  CHECK(primary.copy->calls.size() == 2);
  CHECK(primary.refused.empty());
}

TEST_CASE("a sender that is closed ends what waits with an error") {
  Primary primary;
  const size_t mean = primary.Send(0);
  primary.sender->Close();
  REQUIRE_FALSE(primary.IsWaiting(mean));
  CHECK(absl::IsCancelled(*primary.answers[mean]));
  CHECK(primary.refused.empty());
}

TEST_CASE("a copy is silent while something is owed to it") {
  Primary primary;
  primary.time.Advance(absl::Seconds(5));
  CHECK(primary.sender->Silence() == absl::ZeroDuration());
  primary.Send(0, 0);
  primary.time.Advance(absl::Seconds(1));
  CHECK(primary.sender->Silence() == absl::Seconds(1));
  primary.Send(0, 1);
  CHECK(primary.sender->Silence() == absl::Seconds(1));
  primary.copy->Answer(1, ACCEPTED, 0);
  CHECK(primary.sender->Silence() == absl::ZeroDuration());
  primary.time.Advance(absl::Seconds(2));
  primary.copy->Fail(0, absl::UnavailableError("connection lost"));
  CHECK(primary.sender->Silence() == absl::Seconds(2));
  primary.time.Advance(absl::Milliseconds(5));
  primary.copy->Answer(2, ACCEPTED, 1);
  CHECK(primary.sender->Silence() == absl::ZeroDuration());
}

TEST_CASE("a copy is not silent while its primary itself stands still") {
  Primary primary(/*counts_standstill=*/false);
  primary.Send(0);
  primary.time.Advance(absl::Seconds(1));
  CHECK(primary.sender->Silence() == absl::Seconds(1));
  primary.time.Advance(absl::Seconds(30));
  CHECK(primary.sender->Silence() == absl::Seconds(1));
}

TEST_CASE("a copy with shared memory reads a mean whole and in place") {
  Primary primary;
  primary.copy->is_shared = true;
  const size_t mean = primary.Send(0, 0, kFloatsPerMessage * 2);
  REQUIRE(primary.copy->calls.size() == 1);
  REQUIRE(primary.copy->calls[0].tensors.size() == 1);
  CHECK(primary.copy->calls[0].tensors[0].by_reference);
  CHECK(primary.copy->calls[0].header.pieces(0).size() == kFloatsPerMessage * 2 * sizeof(float));
  primary.copy->Answer(0, ACCEPTED, 0);
  CHECK(primary.IsTaken(mean));
}

TEST_CASE("a copy that has lost the shared memory is sent bytes") {
  Primary primary;
  primary.copy->is_shared = true;
  const size_t mean = primary.Send(0, 0, kFloatsPerMessage * 2);
  primary.copy->is_shared = false;
  primary.copy->Fail(0, absl::NotFoundError("no memory attached"));
  CHECK(primary.refused.empty());
  primary.time.Advance(absl::Milliseconds(5));
  CHECK(primary.copy->num_opened == 2);
  REQUIRE(primary.copy->calls.size() == 3);
  for (const size_t chunk : {1u, 2u}) {
    CHECK_FALSE(primary.copy->calls[chunk].tensors[0].by_reference);
    primary.copy->Answer(chunk, ACCEPTED, 1);
  }
  CHECK(primary.IsTaken(mean));
}

}  // namespace
}  // namespace lockstep::ps
