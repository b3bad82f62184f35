// Memory for gradients is short, and a worker that comes in slowly holds some of it.
#include <catch2/catch.hpp>
#include <vector>

#include "common/base/clock.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::IdentityOf;
using test::Message;

const Shape kShape({4});
const std::vector<float> kGradient = {1, 2, 3, 4};
constexpr uint64_t kBytes = 16;
constexpr int kManyTries = 20;

struct Time {
  ManualClock clock;
};

// A step needs the gradients of three of the workers, and there is room for three.
struct ShortRoom : Time, test::Harness {
  explicit ShortRoom(uint32_t workers = 4)
      : Harness(test::PlanOf(test::PlacementOf({{"w", {4}}}), workers, 3),
                ShardOptions{.held_bytes_budget = 3 * kBytes, .clock = &clock}),
        closed(Grant(0, 3)) {}

  // Of worker `worker`, bytes [offset, offset + size).
  absl::StatusOr<PushStatus> Send(uint32_t worker, uint64_t offset, uint64_t size) {
    clock.Advance(between_messages);
    const auto pushed = shard.Push(
        Message(IdentityOf(worker), 1, 0).Chunk(0, kShape, kGradient, offset, size).Ready());
    if (!pushed.ok()) return pushed.status();
    return pushed->statuses[0];
  }
  // The same until there is room.
  absl::StatusOr<PushStatus> SendUntilTaken(uint32_t worker, uint64_t offset, uint64_t size) {
    absl::StatusOr<PushStatus> sent = Send(worker, offset, size);
    for (int i = 1; i < kManyTries && absl::IsResourceExhausted(sent.status()); ++i) {
      sent = Send(worker, offset, size);
    }
    return sent;
  }
  // Worker 3 has begun, and two others are there.
  void Fill() {
    REQUIRE(*Send(3, 0, 4) == PushStatus::kPending);
    for (const uint32_t worker : {0u, 1u}) {
      REQUIRE(*Send(worker, 0, kBytes) == PushStatus::kAccepted);
    }
  }

  // Half as many bytes of a gradient in half the width.
  absl::StatusOr<PushStatus> SendNarrow(uint32_t worker, uint64_t offset, uint64_t size) {
    Message message(IdentityOf(worker), 1, 0);
    message.arguments().pieces.push_back({VariableId(0), DType::kBFloat16, kShape, offset, size});
    message.payload().resize(size);
    const auto pushed = shard.Push(message.Ready());
    if (!pushed.ok()) return pushed.status();
    return pushed->statuses[0];
  }

  absl::Duration between_messages = absl::Milliseconds(100);
  const test::Reply<ClosedStep> closed;
};

TEST_CASE("a worker that has stopped makes room for a backup") {
  ShortRoom h;
  h.Fill();
  CHECK(absl::IsResourceExhausted(h.Send(2, 0, kBytes).status()));
  const auto sent = h.SendUntilTaken(2, 0, kBytes);
  REQUIRE(sent.ok());
  CHECK(*sent == PushStatus::kAccepted);
  REQUIRE_FALSE(h.closed.IsParked());
  CHECK(h.Read(1, 0) == std::vector<float>{-1, -2, -3, -4});
  CHECK(*h.Send(3, 4, 12) == PushStatus::kStale);
  CHECK(h.shard.Report().held_bytes == 0);
}

TEST_CASE("a gradient that made room counts when all of it has come again") {
  ShortRoom h;
  h.Fill();
  REQUIRE(*h.SendUntilTaken(2, 0, 4) == PushStatus::kPending);
  View view = test::ViewOf(4);
  view.members.erase(view.members.begin() + 2);
  REQUIRE(h.shard.SetView(view).ok());
  CHECK(*h.Send(3, 4, 12) == PushStatus::kPending);
  CHECK(h.closed.IsParked());
  CHECK(*h.Send(3, 0, 4) == PushStatus::kAccepted);
  REQUIRE_FALSE(h.closed.IsParked());
  CHECK(h.Read(1, 0) == std::vector<float>{-1, -2, -3, -4});
}

TEST_CASE("a gradient makes no room within milliseconds") {
  ShortRoom h;
  h.Fill();
  h.between_messages = absl::Milliseconds(3);
  CHECK(absl::IsResourceExhausted(h.SendUntilTaken(2, 0, kBytes).status()));
  h.between_messages = absl::Milliseconds(250);
  CHECK(h.Send(2, 0, kBytes).ok());
}

TEST_CASE("a gradient that makes too little room is kept") {
  ShortRoom h(/*workers=*/5);
  REQUIRE(*h.SendNarrow(3, 0, 4) == PushStatus::kPending);
  REQUIRE(*h.SendNarrow(4, 0, 8) == PushStatus::kAccepted);
  REQUIRE(*h.Send(0, 0, kBytes) == PushStatus::kAccepted);
  REQUIRE(*h.Send(1, 0, 4) == PushStatus::kPending);
  for (const uint64_t offset : {4, 8}) {
    for (int i = 0; i < 4; ++i) CHECK(absl::IsResourceExhausted(h.Send(2, 0, kBytes).status()));
    REQUIRE(*h.Send(1, offset, 4) == PushStatus::kPending);
  }
  CHECK(*h.SendNarrow(3, 4, 4) == PushStatus::kAccepted);
  CHECK_FALSE(h.closed.IsParked());
}

TEST_CASE("two gradients that have stopped make room together") {
  ShortRoom h(/*workers=*/5);
  for (const uint32_t worker : {3u, 4u}) {
    REQUIRE(*h.SendNarrow(worker, 0, 4) == PushStatus::kPending);
  }
  for (const uint32_t worker : {0u, 1u}) {
    REQUIRE(*h.Send(worker, 0, kBytes) == PushStatus::kAccepted);
  }
  CHECK(absl::IsResourceExhausted(h.Send(2, 0, kBytes).status()));
  CHECK(h.SendUntilTaken(2, 0, kBytes).ok());
  CHECK_FALSE(h.closed.IsParked());
}

TEST_CASE("two slow workers do not make room for each other in turn") {
  ShortRoom h;
  h.Fill();
  REQUIRE(*h.SendUntilTaken(2, 0, 4) == PushStatus::kPending);
  CHECK(absl::IsResourceExhausted(h.SendUntilTaken(3, 0, kBytes).status()));
  CHECK(*h.Send(2, 4, 12) == PushStatus::kAccepted);
  CHECK_FALSE(h.closed.IsParked());
}

TEST_CASE("a gradient that comes in makes no room, however many messages have none") {
  ShortRoom h;
  h.Fill();
  CHECK(absl::IsResourceExhausted(h.Send(2, 0, 4).status()));
  // Other messages of the same push, and a try while some bytes come.
  CHECK(absl::IsResourceExhausted(h.SendUntilTaken(2, 8, 4).status()));
  for (const uint64_t offset : {4, 8}) {
    REQUIRE(*h.Send(3, offset, 4) == PushStatus::kPending);
    for (int i = 0; i < 3; ++i) CHECK(absl::IsResourceExhausted(h.Send(2, 0, 4).status()));
  }
  CHECK(*h.Send(3, 12, 4) == PushStatus::kAccepted);
  CHECK_FALSE(h.closed.IsParked());
}

}  // namespace
}  // namespace lockstep::ps
