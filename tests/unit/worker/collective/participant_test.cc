// The state machine by itself: what it asks for, when memory may be written, and that it repeats
// without allocating.
#include "worker/collective/participant.h"

#include <algorithm>
#include <catch2/catch.hpp>

#include "tests/support/allocation_counter.h"
#include "worker/collective/make_schedule.h"
#include "worker/collective/run_in_memory.h"

namespace lockstep::worker {
namespace {

using Kind = Participant::Action::Kind;

Schedule MakeRing(int participants, size_t length) {
  ScheduleSpec spec{ReductionAlgorithm::kXring, {participants, 1}};
  spec.length = length;
  return *MakeSchedule(spec);
}

Tensor Filled(size_t length, float value) {
  Tensor tensor(DType::kFloat32, Shape({static_cast<int64_t>(length)}));
  for (float& element : tensor.as<float>()) element = value;
  return tensor;
}

// Rank 0 of a ring of two, which sends elements [2, 4) first and adds to [0, 2).
TEST_CASE("a participant sends, adds what it gets in parts, and copies the rest") {
  const Schedule schedule = MakeRing(2, 4);
  Tensor vector = Filled(4, 1);
  Participant participant(&schedule, 0, vector.view(), 2);

  Participant::Action action = participant.Next();
  CHECK(action.kind == Kind::kSend);
  CHECK(action.to == Term{1, 0});
  CHECK(action.elements.data == vector.as<float>().data() + 2);
  CHECK(action.elements.num_elements() == 2);
  participant.OnSent(action.to);

  const float numbers[] = {3, 5};
  action = participant.Next();
  REQUIRE(action.kind == Kind::kReceive);
  CHECK(action.messages[0] == Term{1, 0});
  CHECK(action.range.count == 2);
  const void* first = &numbers[0];
  participant.OnReceived({&first, 1}, 1);
  CHECK(participant.Next().received == 1);
  const void* second = &numbers[1];
  participant.OnReceived({&second, 1}, 1);
  CHECK(vector.as<float>()[0] == 2);
  CHECK(vector.as<float>()[1] == 3);

  action = participant.Next();
  CHECK(action.kind == Kind::kSend);
  CHECK(action.to == Term{1, 1});
  CHECK(action.elements.data == vector.as<float>().data());
  REQUIRE(participant.Next().kind == Kind::kReceive);
  const float copied[] = {7, 8};
  const void* all = copied;
  participant.OnReceived({&all, 1}, 2);
  CHECK(vector.as<float>()[3] == 8);
  CHECK(participant.has_result());
  CHECK(participant.Next().kind == Kind::kWaitForSends);
  participant.OnSent({1, 1});
  CHECK(participant.Next().kind == Kind::kDone);
}

TEST_CASE("elements that are still being sent are not overwritten") {
  const Schedule schedule = MakeRing(2, 4);
  Tensor vector = Filled(4, 1);
  Participant participant(&schedule, 0, vector.view(), 1);
  CHECK(participant.Next().kind == Kind::kSend);
  REQUIRE(participant.Next().kind == Kind::kReceive);
  const float numbers[] = {3, 5};
  const void* all = numbers;
  participant.OnReceived({&all, 1}, 2);
  CHECK(participant.Next().kind == Kind::kSend);
  CHECK(participant.Next().kind == Kind::kWaitForSends);
  participant.OnSent({1, 1});
  CHECK(participant.Next().kind == Kind::kWaitForSends);
  participant.OnSent({1, 0});
  CHECK(participant.Next().kind == Kind::kReceive);
}

TEST_CASE("a participant that begins elsewhere only reads there, and receives over what it sends") {
  const Schedule schedule = MakeRing(2, 4);
  Tensor vector = Filled(4, 9);
  Tensor first = Filled(4, 1);
  Participant participant(&schedule, 0, vector.view(), 1);
  REQUIRE(participant.MayBeginElsewhere());
  participant.Restart(vector.view(), 1, first.data());
  Participant::Action action = participant.Next();
  REQUIRE(action.kind == Kind::kSend);
  CHECK(action.elements.data == first.as<float>().data() + 2);
  REQUIRE(participant.Next().kind == Kind::kReceive);
  const float numbers[] = {3, 5};
  const void* const all = numbers;
  participant.OnReceived({&all, 1}, 2);
  action = participant.Next();
  REQUIRE(action.kind == Kind::kSend);
  CHECK(action.elements.data == vector.as<float>().data());
  // Elements [2, 4) are still being sent, from elsewhere.
  REQUIRE(participant.Next().kind == Kind::kReceive);
  participant.OnReceived({&all, 1}, 2);
  CHECK(participant.Next().kind == Kind::kWaitForSends);
  participant.OnSent({1, 0});
  participant.OnSent({1, 1});
  CHECK(participant.Next().kind == Kind::kDone);
  const float expected[] = {4, 6, 3, 5};
  CHECK(std::ranges::equal(vector.as<float>(), expected));
  for (const float element : first.as<float>()) CHECK(element == 1);
}

TEST_CASE("a participant that begins in its vector waits for sends of it") {
  const Schedule schedule = MakeRing(2, 4);
  Tensor vector = Filled(4, 1);
  Participant participant(&schedule, 0, vector.view(), 1);
  participant.Restart(vector.view(), 1, vector.data());
  CHECK(participant.Next().kind == Kind::kSend);
  REQUIRE(participant.Next().kind == Kind::kReceive);
  const float numbers[] = {3, 5};
  const void* const all = numbers;
  participant.OnReceived({&all, 1}, 2);
  CHECK(participant.Next().kind == Kind::kSend);
  CHECK(participant.Next().kind == Kind::kWaitForSends);
}

TEST_CASE("a single participant that begins elsewhere divides those elements") {
  ScheduleSpec spec{ReductionAlgorithm::kPscpu};
  spec.length = 5;
  const Schedule schedule = *MakeSchedule(spec);
  const Tensor first = Filled(5, 6);
  for (const int divisor : {1, 3}) {
    Tensor vector = Filled(5, 9);
    Participant participant(&schedule, 0, vector.view(), divisor);
    REQUIRE(participant.MayBeginElsewhere());
    participant.Restart(vector.view(), divisor, first.data());
    CHECK(participant.Next().kind == Kind::kDone);
    for (const float element : vector.as<float>()) CHECK(element == 6.0f / divisor);
  }
}

TEST_CASE("a single participant divides its own elements") {
  ScheduleSpec spec{ReductionAlgorithm::kPscpu};
  spec.length = 5;
  const Schedule schedule = *MakeSchedule(spec);
  Tensor vector = Filled(5, 6);
  const MutableTensorView view = vector.view();
  RunInMemory(schedule, {&view, 1}, 3);
  for (const float element : vector.as<float>()) CHECK(element == 2);
}

TEST_CASE("a participant that starts again allocates nothing") {
  ScheduleSpec spec{ReductionAlgorithm::kPscpu, {6, 1}, 6};
  spec.length = 100'000;
  const Schedule schedule = *MakeSchedule(spec);
  Tensor vector = Filled(spec.length, 1);
  const Tensor others = Filled(spec.length, 2);
  Participant participant(&schedule, 0, vector.view(), 6);
  const std::vector<const void*> elements(5, others.data());
  const auto run = [&] {
    for (;;) {
      const Participant::Action action = participant.Next();
      if (action.kind == Kind::kDone) return;
      if (action.kind == Kind::kSend) participant.OnSent(action.to);
      if (action.kind == Kind::kReceive) {
        participant.OnReceived(absl::MakeSpan(elements).first(action.messages.size()),
                               action.range.count);
      }
    }
  };
  run();
  CHECK(vector.as<float>()[0] == Approx(11.0 / 6));
  CHECK(test::AllocationsOf([&] {
          for (int step = 0; step < 3; ++step) {
            participant.Restart(vector.view(), 6);
            run();
          }
        }).all == 0);
}

}  // namespace
}  // namespace lockstep::worker
