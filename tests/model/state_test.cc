#include "tests/model/state.h"

#include <catch2/catch.hpp>
#include <utility>

namespace lockstep::model {
namespace {

State BusyState() {
  State state;
  state.members[0] = {.accepted = 4,
                      .view = 3,
                      .order = 2,
                      .serves = 1,
                      .alone = 1,
                      .version = 3,
                      .history = 0b11'01'10,
                      .held = 0b10,
                      .delta = 0b01,
                      .acknowledged = 1,
                      .committed = 2};
  state.members[1] = {.life = Life::kReturned,
                      .accepted = 2,
                      .view = 0,
                      .awaits = Awaits::kOneStepMore,
                      .version = 2,
                      .history = 0b01'10,
                      .lacks_last_version = 1,
                      .committed = 1};
  state.chiefs[3] = {.decision = Decision::kTransfer,
                     .serving = 1,
                     .order = 3,
                     .answers = {Answer::kLeads, Answer::kAwaits}};
  state.workers[0] = {.step = 2, .phase = Phase::kHasGradient, .prefetched = 0b10};
  state.workers[1] = {.step = 1, .phase = Phase::kDroppedGradient};
  state.plain = {.accepted = 3, .version = 1, .held = 0b01};
  state.settled = 0b01'10;
  return state;
}

// The same with the names of the two workers exchanged.
State BusyStateOfOthers() {
  State state = BusyState();
  state.members[0].history = 0b11'10'01;
  state.members[0].held = 0b01;
  state.members[0].delta = 0b10;
  state.members[1].history = 0b10'01;
  std::swap(state.workers[0], state.workers[1]);
  state.workers[1].prefetched = 0b01;
  state.plain.held = 0b10;
  state.settled = 0b10'01;
  return state;
}

TEST_CASE("a packed state is unpacked as it was, but for the order of workers") {
  const State unpacked = Unpack(Pack(BusyState()));
  CHECK(Pack(unpacked) == Pack(BusyState()));
  CHECK(unpacked.members[0].accepted == 4);
  CHECK(unpacked.members[0].order == 2);
  CHECK(unpacked.members[0].version == 3);
  CHECK(unpacked.members[1].life == Life::kReturned);
  CHECK(unpacked.members[1].awaits == Awaits::kOneStepMore);
  CHECK(unpacked.members[1].lacks_last_version == 1);
  CHECK(unpacked.chiefs[3].decision == Decision::kTransfer);
  CHECK(unpacked.chiefs[3].answers[1] == Answer::kAwaits);
  CHECK(unpacked.workers[0].step + unpacked.workers[1].step == 3);
  CHECK(unpacked.plain.accepted == 3);
}

TEST_CASE("states that differ in the order of workers alone are one") {
  CHECK(Pack(BusyState()) == Pack(BusyStateOfOthers()));
}

TEST_CASE("states that differ in one field are two") {
  const PackedState packed = Pack(BusyState());
  State state = BusyState();
  SECTION("a member") { state.members[1].committed = 0; }
  SECTION("a gradient that a member holds") { state.members[0].held = 0b11; }
  SECTION("an answer") { state.chiefs[3].answers[1] = Answer::kNone; }
  SECTION("a worker") { state.workers[1].phase = Phase::kHasGradient; }
  SECTION("what is settled") { state.settled = 0b11'10; }
  CHECK_FALSE(Pack(state) == packed);
}

}  // namespace
}  // namespace lockstep::model
