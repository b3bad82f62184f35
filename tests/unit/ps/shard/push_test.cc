// What the door does with pushes: well formed or not, in chunks, repeated, late, asked about.
#include <catch2/catch.hpp>
#include <functional>

#include "absl/strings/match.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::IdentityOf;
using test::Message;
using test::PlacementOf;
using test::PlanOf;
using test::Reply;

const Shape kShape({4});
const std::vector<float> kGradient = {1, 2, 3, 4};
const std::vector<float> kOther = {10, 20, 30, 40};

CreateVariablesRequest TwoVariables(uint32_t total = 2, uint32_t aggregate = 2) {
  return PlanOf(PlacementOf({{"a", {4}}, {"b", {4}}}), total, aggregate);
}

TEST_CASE("two replicas' gradients make a step") {
  Harness h(PlanOf(PlacementOf({{"w", {4}}}), 2, 2));
  const Reply<ClosedStep> closed = h.Grant(0, 2, 0.5f);
  CHECK(h.Push(0, 1, 0, 0, kGradient) == PushStatus::kAccepted);
  CHECK(closed.IsParked());
  CHECK(h.Push(1, 1, 0, 0, kOther) == PushStatus::kAccepted);
  REQUIRE_FALSE(closed.IsParked());
  CHECK(closed->step == GlobalStep(0));
  CHECK(closed->shard_step == GlobalStep(1));
  CHECK(closed->accepted == 2);
  CHECK(h.Read(1, 0) == std::vector<float>{-2.75f, -5.5f, -8.25f, -11});
  CHECK(h.Read(0, 0) == std::vector<float>{0, 0, 0, 0});
}

TEST_CASE("what is malformed is refused, stale or not, naming the variable, and changes nothing") {
  Harness h(TwoVariables());
  struct Case {
    const char* what;
    std::function<void(Message*)> spoil;
  };
  const Case cases[] = {
      {"variable 9: unknown",
       [](Message* m) { m->arguments().pieces[0].variable = VariableId(9); }},
      {"\"b\" (1): twice", [](Message* m) { m->arguments().pieces[0].variable = VariableId(1); }},
      {"\"a\" (0): expected dtype float32, bfloat16 or float16, got float64",
       [](Message* m) { m->arguments().pieces[0].dtype = DType::kFloat64; }},
      {"\"b\" (1): expected shape [4], got [2,2]",
       [](Message* m) {
         m->arguments().pieces[1].shape = Shape({2, 2});
       }},
      {"\"a\" (0): expected bytes in [0, 16), got 16 bytes from offset 4",
       [](Message* m) { m->arguments().pieces[0].offset = 4; }},
      {"\"a\" (0): expected bytes in [0, 16), got 16 bytes from offset 18446744073709551615",
       [](Message* m) { m->arguments().pieces[0].offset = ~uint64_t{0}; }},
      {"\"a\" (0): expected bytes in [0, 16), got 18446744073709551615 bytes",
       [](Message* m) { m->arguments().pieces[0].size = ~uint64_t{0}; }},
      {"\"a\" (0): expected bytes, got none",
       [](Message* m) { m->arguments().pieces[0].size = 0; }},
      {"expected a payload of 32 bytes, got 31", [](Message* m) { m->payload().pop_back(); }},
      {"expected a payload of 32 bytes, got 33",
       [](Message* m) { m->payload().push_back(std::byte{1}); }},
      {"expected a payload of 28 bytes, got 32",
       [](Message* m) { m->arguments().pieces[1].size = 12; }},
      {"expected a payload of 0 bytes, got 32", [](Message* m) { m->arguments().ask = true; }},
      {"push_seq counts from 1", [](Message* m) { m->arguments().push_seq = PushSeq(0); }},
  };
  for (const int64_t stamp : {0, -1}) {
    for (const Case& c : cases) {
      CAPTURE(c.what, stamp);
      Message message(IdentityOf(0), 1, stamp);
      message.Whole(0, kShape, kGradient).Whole(1, kShape, kOther);
      c.spoil(&message);
      const absl::Status status = h.shard.Push(message.Ready()).status();
      CHECK(absl::IsInvalidArgument(status));
      CHECK(absl::StrContains(status.message(), c.what));
    }
  }
  const ShardReport report = h.shard.Report();
  CHECK(report.accepted == 0);
  CHECK(report.stale == 0);
  CHECK(report.held_bytes == 0);
  CHECK(report.rejected == 2 * std::size(cases));
  CHECK(h.Push(0, 1, 0, 0, kGradient) == PushStatus::kAccepted);
}

TEST_CASE("a variable of another shard is refused by saying so") {
  Harness h;
  REQUIRE(h.shard.SetView(test::ViewOf(1)).ok());
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"a", {4}, 0}, {"b", {4}, 1}}, 2), 1, 1);
  REQUIRE(h.shard.CreateVariables(plan).ok());
  const auto pushed =
      h.shard.Push(Message(IdentityOf(0), 1, 0).Whole(1, kShape, kGradient).Ready());
  CHECK(absl::IsInvalidArgument(pushed.status()));
  CHECK(absl::StrContains(pushed.status().message(), "lives on another shard"));
}

TEST_CASE("a push without pieces is an empty success and one with only a payload an error") {
  Harness h(TwoVariables());
  CHECK(h.shard.Push(Message(IdentityOf(0), 1, 0).Ready())->statuses.empty());
  Message stray(IdentityOf(0), 1, 0);
  stray.payload().resize(3);
  CHECK(absl::IsInvalidArgument(h.shard.Push(stray.Ready()).status()));
}

TEST_CASE("a repeated push gets the same verdict and counts once") {
  Harness h(TwoVariables());
  const auto closed = h.Grant(0, 2);
  for (int times = 0; times < 3; ++times) {
    CHECK(h.Push(0, 1, 0, 0, kGradient) == PushStatus::kAccepted);
  }
  CHECK(h.shard.Report().accepted == 1);
  CHECK(h.shard.Report().duplicates == 2);
  CHECK(h.shard.Report().pending[0].have == 1);
  CHECK(h.Push(1, 1, 0, 0, kOther) == PushStatus::kAccepted);
  // Closed meanwhile: the answer stays what it was.
  CHECK(h.Push(0, 1, 0, 0, kGradient) == PushStatus::kAccepted);
  CHECK(closed.IsParked());
}

TEST_CASE("chunks in any order, repeated, overlapping and torn make one gradient") {
  Harness h(PlanOf(PlacementOf({{"w", {4}}}), 1, 1));
  const auto closed = h.Grant(0, 1, 1.0f);
  const std::pair<uint64_t, uint64_t> chunks[] = {{13, 3}, {0, 6}, {2, 5}, {0, 6}, {13, 3}};
  for (const auto& [offset, size] : chunks) {
    const auto pushed = h.shard.Push(
        Message(IdentityOf(0), 1, 0).Chunk(0, kShape, kGradient, offset, size).Ready(1));
    REQUIRE(pushed.ok());
    CHECK(pushed->statuses[0] == PushStatus::kPending);
  }
  CHECK(h.shard.Report().held_bytes == 16);
  const auto pushed =
      h.shard.Push(Message(IdentityOf(0), 1, 0).Chunk(0, kShape, kGradient, 5, 11).Ready(2));
  CHECK(pushed->statuses[0] == PushStatus::kAccepted);
  CHECK_FALSE(closed.IsParked());
  CHECK(h.Read(1, 0) == std::vector<float>{-1, -2, -3, -4});
  CHECK(h.shard.Report().held_bytes == 0);
}

TEST_CASE("a newer push frees what came of the older one, which never counts") {
  Harness h(TwoVariables());
  const auto half = [&](uint64_t seq, uint64_t offset) {
    return h.shard
        .Push(Message(IdentityOf(0), seq, 0).Chunk(0, kShape, kGradient, offset, 8).Ready())
        ->statuses[0];
  };
  CHECK(half(1, 0) == PushStatus::kPending);
  CHECK(h.shard.Report().held_bytes == 16);
  CHECK(half(2, 0) == PushStatus::kPending);
  CHECK(h.shard.Report().held_bytes == 16);
  CHECK(half(1, 8) == PushStatus::kStale);
  CHECK(half(2, 8) == PushStatus::kAccepted);
  CHECK(half(1, 8) == PushStatus::kStale);
  CHECK(h.shard.Report().accepted == 1);
  CHECK(h.shard.Report().stale == 0);
}

TEST_CASE("stale gradients are dropped, told and counted once per variable") {
  Harness h(TwoVariables(2, 1));
  const auto closed = h.Grant(0, 1);
  const auto both = [&](uint32_t worker, uint64_t seq, int64_t stamp) {
    return h.shard
        .Push(Message(IdentityOf(worker), seq, stamp)
                  .Whole(0, kShape, kGradient)
                  .Whole(1, kShape, kGradient)
                  .Ready())
        ->statuses;
  };
  CHECK(both(0, 1, 0) == std::vector<PushStatus>(2, PushStatus::kAccepted));
  REQUIRE_FALSE(closed.IsParked());
  CHECK(both(1, 1, 0) == std::vector<PushStatus>(2, PushStatus::kStale));
  CHECK(both(1, 1, 0) == std::vector<PushStatus>(2, PushStatus::kStale));
  const ShardReport report = h.shard.Report();
  CHECK(report.accepted == 2);
  CHECK(report.stale == 2);
  CHECK(report.held_bytes == 0);
}

TEST_CASE("the chunks of a loser are freed when its variable closes") {
  Harness h(TwoVariables(2, 1));
  const auto closed = h.Grant(0, 1);
  REQUIRE(h.shard.Push(Message(IdentityOf(1), 1, 0).Chunk(0, kShape, kOther, 0, 8).Ready()).ok());
  CHECK(h.shard.Report().held_bytes == 16);
  CHECK(h.Push(0, 1, 0, 0, kGradient) == PushStatus::kAccepted);
  CHECK(h.shard.Report().held_bytes == 0);
  CHECK(h.shard.Report().stale == 1);
  const auto rest =
      h.shard.Push(Message(IdentityOf(1), 1, 0).Chunk(0, kShape, kOther, 8, 8).Ready());
  CHECK(rest->statuses[0] == PushStatus::kStale);
  CHECK(h.shard.Report().stale == 1);
  CHECK(closed.IsParked());
}

TEST_CASE("one push may count for one variable and be stale for another") {
  // semantics: W0 -> X, Y; W1 -> X (full); W2 -> Y (full); W1 -> Y and W2 -> X are dropped.
  Harness h(TwoVariables(3, 2));
  const auto closed = h.Grant(0, 2, 1.0f);
  CHECK(h.Push(0, 1, 0, 0, {0, 0, 0, 0}) == PushStatus::kAccepted);
  CHECK(h.Push(0, 1, 0, 1, {0, 0, 0, 0}) == PushStatus::kAccepted);
  CHECK(h.Push(1, 1, 0, 0, {2, 2, 2, 2}) == PushStatus::kAccepted);
  CHECK(h.Push(2, 1, 0, 1, {4, 4, 4, 4}) == PushStatus::kAccepted);
  CHECK(h.Push(1, 1, 0, 1, {2, 2, 2, 2}) == PushStatus::kStale);
  CHECK(h.Push(2, 1, 0, 0, {4, 4, 4, 4}) == PushStatus::kStale);
  REQUIRE_FALSE(closed.IsParked());
  CHECK(h.Read(1, 0)[0] == -1);
  CHECK(h.Read(1, 1)[0] == -2);
}

TEST_CASE("asking tells the verdict, or whether a gradient would be stale, and sends nothing") {
  Harness h(TwoVariables(2, 1));
  const auto ask = [&](uint32_t worker, uint64_t seq, int64_t stamp) {
    return h.shard.Push(Message(IdentityOf(worker), seq, stamp).Ask(0).Ask(1).Ready())->statuses;
  };
  CHECK(ask(0, 1, 0) == std::vector<PushStatus>(2, PushStatus::kPending));
  CHECK(h.shard.Report().held_bytes == 0);
  const auto closed = h.Grant(0, 1);
  CHECK(h.Push(0, 1, 0, 0, kGradient) == PushStatus::kAccepted);
  CHECK(ask(0, 1, 0) == std::vector<PushStatus>{PushStatus::kAccepted, PushStatus::kPending});
  // The straggler saves itself the sending, and is counted all the same, once.
  CHECK(ask(1, 1, 0) == std::vector<PushStatus>{PushStatus::kStale, PushStatus::kPending});
  CHECK(ask(1, 1, 0) == std::vector<PushStatus>{PushStatus::kStale, PushStatus::kPending});
  CHECK(h.shard.Report().stale == 1);
  Message unknown(IdentityOf(0), 1, 0);
  CHECK(absl::IsInvalidArgument(h.shard.Push(unknown.Ask(5).Ready()).status()));
}

TEST_CASE("a half-received push is pending when asked about, and goes on afterwards") {
  Harness h(TwoVariables());
  REQUIRE(
      h.shard.Push(Message(IdentityOf(0), 1, 0).Chunk(0, kShape, kGradient, 0, 8).Ready()).ok());
  CHECK(h.shard.Push(Message(IdentityOf(0), 1, 0).Ask(0).Ready())->statuses[0] ==
        PushStatus::kPending);
  CHECK(h.shard.Push(Message(IdentityOf(0), 1, 0).Chunk(0, kShape, kGradient, 8, 8).Ready())
            ->statuses[0] == PushStatus::kAccepted);
}

TEST_CASE("one push has one stamp") {
  Harness h(TwoVariables());
  CHECK(h.Push(0, 1, 0, 0, kGradient) == PushStatus::kAccepted);
  CHECK(absl::IsInvalidArgument(
      h.shard.Push(Message(IdentityOf(0), 1, 1).Whole(1, kShape, kGradient).Ready()).status()));
}

TEST_CASE("PER_REPLICA counts a replica once, whichever incarnation or push it was") {
  Harness h(TwoVariables());
  const auto closed = h.Grant(0, 2, 1.0f);
  CHECK(h.Push(0, 1, 0, 0, kGradient) == PushStatus::kAccepted);
  CHECK(h.Push(0, 2, 0, 0, kOther) == PushStatus::kAccepted);
  CHECK(h.shard.Report().accepted == 1);

  View view = test::ViewOf(2);
  view.members[0].incarnation = Incarnation(999);
  REQUIRE(h.shard.SetView(view).ok());
  WorkerIdentity successor = IdentityOf(0);
  successor.incarnation = Incarnation(999);
  const auto again = h.shard.Push(
      Message(successor, 1, 0).Whole(0, kShape, kOther).Whole(1, kShape, kOther).Ready());
  CHECK(again->statuses == std::vector<PushStatus>(2, PushStatus::kAccepted));
  CHECK(h.shard.Report().accepted == 2);
  CHECK(h.shard.Push(Message(successor, 2, 0).Ask(0).Ready())->statuses[0] ==
        PushStatus::kAccepted);
  CHECK(h.Push(1, 1, 0, 0, {3, 3, 3, 3}) == PushStatus::kAccepted);
  CHECK(h.Read(1, 0, 1) == std::vector<float>{-2, -2.5f, -3, -3.5f});
  CHECK(absl::IsAborted(
      h.shard.Push(Message(IdentityOf(0), 3, 0).Whole(0, kShape, kOther).Ready()).status()));
}

TEST_CASE("FIFO counts a replica as often as it pushes, in the order of its pushes") {
  Harness h(PlanOf(PlacementOf({{"w", {4}}}), 2, 3, FIFO));
  const auto closed = h.Grant(0, 3, 1.0f);
  CHECK(h.Push(1, 1, 0, 0, {1e8f, 0, 0, 0}) == PushStatus::kAccepted);
  CHECK(h.Push(0, 1, 0, 0, {1, 0, 0, 0}) == PushStatus::kAccepted);
  CHECK(h.Push(0, 2, 0, 0, {-1, 0, 0, 0}) == PushStatus::kAccepted);
  REQUIRE_FALSE(closed.IsParked());
  // (1 + -1) + 1e8 and not (1e8 + 1) + -1, which would lose the one.
  CHECK(h.Read(1, 0)[0] == -1e8f / 3.0f);
}

TEST_CASE("chunks of an incarnation that left the view are freed, and refused from then on") {
  Harness h(TwoVariables());
  REQUIRE(
      h.shard.Push(Message(IdentityOf(0), 1, 0).Chunk(0, kShape, kGradient, 0, 8).Ready()).ok());
  CHECK(h.shard.Report().held_bytes == 16);
  View view = test::ViewOf(2);
  view.members.erase(view.members.begin());
  REQUIRE(h.shard.SetView(view).ok());
  CHECK(h.shard.Report().held_bytes == 0);
  CHECK(absl::IsFailedPrecondition(
      h.shard.Push(Message(IdentityOf(0), 1, 0).Chunk(0, kShape, kGradient, 8, 8).Ready())
          .status()));
}

TEST_CASE("a gradient that counted stays counted when its worker dies") {
  Harness h(TwoVariables());
  const auto closed = h.Grant(0, 2, 1.0f);
  CHECK(h.Push(0, 1, 0, 0, kGradient) == PushStatus::kAccepted);
  View view = test::ViewOf(2);
  view.members.erase(view.members.begin());
  REQUIRE(h.shard.SetView(view).ok());
  CHECK(h.Push(1, 1, 0, 0, kGradient) == PushStatus::kAccepted);
  CHECK(h.Read(1, 0, 1) == std::vector<float>{-1, -2, -3, -4});
}

TEST_CASE("without room a gradient waits with its worker, the earliest variable first") {
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"first", {4}}, {"last", {4}}}), 2, 2);
  Harness h(plan, ShardOptions{.held_bytes_budget = 32});
  const auto closed = h.Grant(0, 2, 1.0f);
  // Everybody pushes "last" first; room for anything else there is none before it has closed.
  const auto early = h.shard.Push(Message(IdentityOf(0), 1, 0).Whole(0, kShape, kGradient).Ready());
  CHECK(absl::IsResourceExhausted(early.status()));
  CHECK(absl::StrContains(early.status().message(), "\"first\""));
  CHECK(absl::StrContains(early.status().message(), "Retry in 50 ms"));
  // In one message: the one with room is taken, the other is to be sent again.
  const auto mixed = h.shard.Push(
      Message(IdentityOf(0), 1, 0).Whole(0, kShape, kGradient).Whole(1, kShape, kGradient).Ready());
  CHECK(absl::IsResourceExhausted(mixed.status()));
  CHECK(h.shard.Push(Message(IdentityOf(0), 1, 0).Ask(0).Ask(1).Ready())->statuses ==
        std::vector<PushStatus>{PushStatus::kPending, PushStatus::kAccepted});
  CHECK(h.Push(1, 1, 0, 1, kGradient) == PushStatus::kAccepted);
  CHECK(h.Push(0, 1, 0, 0, kGradient) == PushStatus::kAccepted);
  CHECK(h.Push(1, 1, 0, 0, kGradient) == PushStatus::kAccepted);
  REQUIRE_FALSE(closed.IsParked());
  CHECK(h.Read(1, 0) == std::vector<float>{-1, -2, -3, -4});
}

TEST_CASE("a budget too small for the largest variable is refused at the start") {
  Harness h(ShardOptions{.held_bytes_budget = 31});
  REQUIRE(h.shard.SetView(test::ViewOf(2)).ok());
  const absl::Status status = h.shard.CreateVariables(TwoVariables()).status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK(absl::StrContains(status.message(), "at least 2 gradients"));
  CHECK(absl::StrContains(status.message(), "\"a\" with 16 bytes"));
}

TEST_CASE("a variable without elements closes on empty gradients") {
  Harness h(PlanOf(PlacementOf({{"nothing", {0}}}), 1, 1));
  const auto closed = h.Grant(0, 1);
  CHECK(h.Push(0, 1, 0, 0, {}) == PushStatus::kAccepted);
  CHECK_FALSE(closed.IsParked());
}

TEST_CASE("after the end pushes are dropped without being counted") {
  Harness h(TwoVariables());
  REQUIRE(h.shard.Finish(test::kCommand).ok());
  CHECK(h.Push(0, 1, 0, 0, kGradient) == PushStatus::kStale);
  CHECK(h.shard.Report().stale == 0);
  CHECK(h.shard.Report().held_bytes == 0);
}

}  // namespace
}  // namespace lockstep::ps
