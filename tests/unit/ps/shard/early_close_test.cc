// Large gradients that stay in the messages that brought them, and variables of which a part closes
// before the rest has come.
#include <catch2/catch.hpp>
#include <cstring>
#include <random>

#include "absl/strings/match.h"
#include "common/tensor/half_copy.h"
#include "common/update/dense_update.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps::test {
namespace {

constexpr uint64_t kRange = DenseUpdate::kRangeBytes;
constexpr uint64_t kBytes = 3 * kRange + 400;
constexpr int64_t kElements = kBytes / sizeof(float);
const Shape kShape({kElements});

std::vector<float> Random(uint32_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> any(-1, 1);
  std::vector<float> values(kElements);
  for (float& value : values) value = any(random);
  return values;
}

CreateVariablesRequest LargePlan(uint32_t replicas = 2) {
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"w", {kElements}}}), replicas, replicas);
  plan.mutable_optimizer()->mutable_momentum()->set_momentum(0.5f);
  plan.set_every_replica_counts(true);
  return plan;
}

// A part of a worker's gradient, in a message of its own.
Message Part(uint32_t worker, const std::vector<float>& gradient, uint64_t begin, uint64_t end,
             uint64_t push_seq = 1, int64_t stamp = 0) {
  return Message(IdentityOf(worker), push_seq, stamp)
      .Chunk(0, kShape, gradient, begin, end - begin);
}

PushStatus Push(Harness* h, Message message) {
  const auto result = h->shard.Push(message.Kept());
  REQUIRE(result.ok());
  return result->statuses[0];
}

PullPiece Bytes(uint64_t begin, uint64_t end) { return {VariableId(0), begin, end - begin}; }

// Version 1 after a step with these gradients, which come whole and are copied.
std::vector<float> StepWith(const std::vector<std::vector<float>>& gradients) {
  CreateVariablesRequest plan = LargePlan(static_cast<uint32_t>(gradients.size()));
  plan.set_every_replica_counts(false);
  Harness h(plan);
  h.Grant(0, plan.replicas_to_aggregate());
  for (uint32_t worker = 0; worker < gradients.size(); ++worker) {
    h.Push(worker, 1, 0, 0, gradients[worker]);
  }
  return h.Read(1, 0);
}

std::vector<float> Cut(const std::vector<float>& values, uint64_t begin, uint64_t end) {
  return {values.begin() + static_cast<int64_t>(begin / 4),
          values.begin() + static_cast<int64_t>(end / 4)};
}

TEST_CASE("what all replicas have brought of a variable is there before the rest has come") {
  const std::vector<float> first = Random(1);
  const std::vector<float> second = Random(2);
  const std::vector<float> expected = StepWith({first, second});
  Harness h(LargePlan());
  const auto closed = h.Grant(0, 2);
  const auto part = h.Pull(0, 1, {Bytes(kRange + 40, 2 * kRange)});
  const auto across = h.Pull(1, 1, {Bytes(kRange - 8, kRange + 8)});
  const auto whole = h.Pull(0, 1, {{VariableId(0)}});
  CHECK(Push(&h, Part(1, second, kRange, 2 * kRange)) == PushStatus::kPending);
  CHECK(Push(&h, Part(0, first, 0, kRange + 1000)) == PushStatus::kPending);
  CHECK(part.IsParked());
  CHECK(Push(&h, Part(0, first, kRange + 1000, 3 * kRange)) == PushStatus::kPending);
  REQUIRE_FALSE(part.IsParked());
  CHECK(part->version == GlobalStep(1));
  CHECK(ValuesOf(part->pieces[0]) == Cut(expected, kRange + 40, 2 * kRange));
  CHECK(across.IsParked());
  CHECK(Push(&h, Part(1, second, 0, kRange)) == PushStatus::kPending);
  REQUIRE_FALSE(across.IsParked());
  CHECK(ValuesOf(across->pieces[0]) == Cut(expected, kRange - 8, kRange + 8));
  CHECK(h.Read(0, 0) == std::vector<float>(kElements));
  CHECK(whole.IsParked());
  CHECK(closed.IsParked());

  CHECK(Push(&h, Part(1, second, 2 * kRange, kBytes)) == PushStatus::kAccepted);
  CHECK(whole.IsParked());
  CHECK(Push(&h, Part(0, first, 3 * kRange, kBytes)) == PushStatus::kAccepted);
  REQUIRE_FALSE(closed.IsParked());
  REQUIRE_FALSE(whole.IsParked());
  CHECK(ValuesOf(whole->pieces[0]) == expected);
  CHECK(ValuesOf(part->pieces[0]) == Cut(expected, kRange + 40, 2 * kRange));
  CHECK(h.shard.Report().held_bytes == 0);
  CHECK(h.shard.Report().accepted == 2);
}

TEST_CASE("a push that only asks gives up the one before it") {
  Harness h(LargePlan());
  CHECK(Push(&h, Part(0, Random(1), 0, kRange)) == PushStatus::kPending);
  CHECK(h.shard.Report().held_bytes == kBytes);
  const auto asked = h.shard.Push(Message(IdentityOf(0), 2, 0).Ask(0).Ready());
  REQUIRE(asked.ok());
  CHECK(asked->statuses[0] == PushStatus::kPending);
  CHECK(h.shard.Report().held_bytes == 0);
}

TEST_CASE("step after step closes early, and a repeated message changes nothing") {
  Harness h(LargePlan());
  Harness plain([] {
    CreateVariablesRequest plan = LargePlan();
    plan.set_every_replica_counts(false);
    return plan;
  }());
  for (int64_t step = 0; step < 4; ++step) {
    const auto seed = static_cast<uint32_t>(10 * step);
    const auto seq = static_cast<uint64_t>(step) + 1;
    h.Grant(step, 2);
    plain.Grant(step, 2);
    for (const uint64_t begin : {uint64_t{0}, 2 * kRange, kRange, 3 * kRange}) {
      for (const uint32_t worker : {1u, 0u, 1u}) {
        Push(&h, Part(worker, Random(seed + worker), begin, std::min(begin + kRange, kBytes), seq,
                      step));
      }
    }
    for (const uint32_t worker : {0u, 1u}) {
      plain.Push(worker, seq, step, 0, Random(seed + worker));
    }
    CHECK(h.Read(step + 1, 0) == plain.Read(step + 1, 0));
    CHECK(h.shard.CommitStep(kCommand, GlobalStep(step), false).ok());
    CHECK(plain.shard.CommitStep(kCommand, GlobalStep(step), false).ok());
  }
  CHECK(h.shard.Report().accepted == 8);
}

TEST_CASE("a variable closes as a whole where a gradient may be dropped or refused") {
  CreateVariablesRequest plan = LargePlan();
  SECTION("a replica may be left out") { plan.set_every_replica_counts(false); }
  SECTION("a value that is no number is refused") { plan.set_non_finite(REFUSE_NON_FINITE); }
  Harness h(plan);
  h.Grant(0, 2);
  const auto part = h.Pull(0, 1, {Bytes(0, kRange)});
  const std::vector<float> gradient = Random(1);
  for (const uint32_t worker : {0u, 1u}) Push(&h, Part(worker, gradient, 0, 2 * kRange));
  CHECK(part.IsParked());
  for (const uint32_t worker : {0u, 1u}) Push(&h, Part(worker, gradient, 2 * kRange, kBytes));
  REQUIRE_FALSE(part.IsParked());
  CHECK(ValuesOf(part->pieces[0]) == Cut(StepWith({gradient, gradient}), 0, kRange));
}

TEST_CASE("what came before its grant closes with the rest") {
  const std::vector<float> gradient = Random(1);
  Harness h(LargePlan());
  for (const uint32_t worker : {0u, 1u}) Push(&h, Part(worker, gradient, 0, kRange));
  h.Grant(0, 2);
  const auto early = h.Pull(0, 1, {Bytes(0, kRange)});
  const auto next = h.Pull(0, 1, {Bytes(kRange, 2 * kRange)});
  for (const uint32_t worker : {0u, 1u}) Push(&h, Part(worker, gradient, kRange, 3 * kRange));
  CHECK(early.IsParked());
  CHECK_FALSE(next.IsParked());
  for (const uint32_t worker : {0u, 1u}) Push(&h, Part(worker, gradient, 3 * kRange, kBytes));
  CHECK_FALSE(early.IsParked());
  CHECK(h.Read(1, 0) == StepWith({gradient, gradient}));
}

TEST_CASE("a successor's gradient takes the place of what was not made of its predecessor's") {
  const std::vector<float> first = Random(1);
  const std::vector<float> lost = Random(2);
  const std::vector<float> again = Random(3);
  Harness h(LargePlan());
  h.Grant(0, 2);
  Push(&h, Part(1, lost, 0, 2 * kRange));
  Push(&h, Part(0, first, 0, kRange));  // makes the first range
  View view = ViewOf(2);
  view.members[1].incarnation = Incarnation(777);
  REQUIRE(h.shard.SetView(view).ok());
  const auto second_range = h.Pull(0, 1, {Bytes(kRange, 2 * kRange)});
  CHECK(Push(&h, Part(0, first, kRange, kBytes)) == PushStatus::kAccepted);
  CHECK(second_range.IsParked());
  Message successor({kJob, Epoch(1), WorkerIndex(1), Incarnation(777)}, 1, 0);
  CHECK(Push(&h, successor.Whole(0, kShape, again)) == PushStatus::kAccepted);

  std::vector<float> mixed = again;
  std::copy_n(lost.begin(), kRange / 4, mixed.begin());
  CHECK(h.Read(1, 0) == StepWith({first, mixed}));
  CHECK_FALSE(second_range.IsParked());
  CHECK(h.shard.Report().held_bytes == 0);
}

TEST_CASE("a worker that begins a new push takes the old one back as far as it is not made") {
  const std::vector<float> first = Random(1);
  const std::vector<float> second = Random(2);
  Harness h(LargePlan());
  h.Grant(0, 2);
  Push(&h, Part(1, second, 0, 2 * kRange));
  Push(&h, Part(1, second, 0, kRange, 2));  // the same gradient under another number
  Push(&h, Part(0, first, 0, kBytes));
  CHECK(h.Pull(0, 1, {Bytes(kRange, 2 * kRange)}).IsParked());
  CHECK(Push(&h, Part(1, second, kRange, kBytes, 2)) == PushStatus::kAccepted);
  CHECK(h.Read(1, 0) == StepWith({first, second}));
}

TEST_CASE("what comes for the step after a variable's last is counted for that one") {
  const std::vector<float> now = Random(1);
  const std::vector<float> ahead = Random(2);
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"w", {kElements}}, {"v", {1}}}), 2, 2);
  plan.set_every_replica_counts(true);
  Harness h(plan);
  const auto closed = h.Grant(0, 2);
  h.Grant(1, 2);
  for (const uint32_t worker : {0u, 1u}) {
    Push(&h, Part(worker, now, 0, 2 * kRange));
    Push(&h, Part(worker, now, 2 * kRange, kBytes));
  }
  const std::vector<float> after_one = h.Read(1, 0);
  REQUIRE(after_one.size() == kElements);
  CHECK(closed.IsParked());  // the other variable is open
  for (const uint32_t worker : {0u, 1u}) Push(&h, Part(worker, ahead, 0, kRange, 2, 1));
  CHECK(h.Pull(0, 2, {Bytes(0, kRange)}).IsParked());
  for (const uint32_t worker : {0u, 1u}) {
    REQUIRE(h.shard.Push(Message(IdentityOf(worker), 3, 0).Whole(1, Shape({1}), {1}).Kept()).ok());
  }
  CHECK_FALSE(closed.IsParked());
  for (const uint32_t worker : {0u, 1u}) Push(&h, Part(worker, ahead, 0, kRange, 4, 1));
  CHECK_FALSE(h.Pull(0, 2, {Bytes(0, kRange)}).IsParked());
  for (const uint32_t worker : {0u, 1u}) Push(&h, Part(worker, ahead, kRange, kBytes, 4, 1));
  const std::vector<float> after_two = h.Read(2, 0);
  REQUIRE(after_two.size() == kElements);
  for (size_t i = 0; i < after_two.size(); ++i) REQUIRE(after_two[i] == after_one[i] - ahead[i]);
}

TEST_CASE("gradients in a worker's own memory close early with those that come in parts") {
  const std::vector<float> first = Random(1);
  const std::vector<float> second = Random(2);
  const auto memory = std::make_shared<Tensor>(DType::kFloat32, kShape);
  std::ranges::copy(first, memory->as<float>().begin());
  Harness h(LargePlan());
  h.Grant(0, 2);
  Push(&h, Part(1, second, 0, kRange));
  PushArguments arguments;
  arguments.worker = IdentityOf(0);
  arguments.push_seq = PushSeq(1);
  arguments.pieces = {{VariableId(0), DType::kFloat32, kShape, 0, kBytes}};
  arguments.tensors = Borrowed({std::as_const(*memory).view().bytes()}, memory);
  REQUIRE(h.shard.Push(arguments).ok());
  const auto part = h.Pull(0, 1, {Bytes(0, kRange)});
  REQUIRE_FALSE(part.IsParked());
  Push(&h, Part(1, second, kRange, 2 * kRange));
  CHECK_FALSE(h.Pull(0, 1, {Bytes(kRange, 2 * kRange)}).IsParked());
  Push(&h, Part(1, second, 2 * kRange, kBytes));
  CHECK(h.Read(1, 0) == StepWith({first, second}));
  CHECK(memory.use_count() == 2);  // the order's
}

TEST_CASE("halves of an early part can be pulled when halves are pulled at all") {
  const std::vector<float> gradient = Random(1);
  const std::vector<float> expected = StepWith({gradient, gradient});
  Harness h(LargePlan());
  h.Grant(0, 2);
  const auto pull = [&h](int64_t version, uint64_t begin, uint64_t end) {
    Reply<PullResult> reply;
    h.shard.Pull({.worker = IdentityOf(0),
                  .version = GlobalStep(version),
                  .pieces = {Bytes(begin, end)},
                  .wire_type = DType::kBFloat16},
                 reply.done());
    return reply;
  };
  const bool asked_before = GENERATE(true, false);
  if (asked_before) CHECK_FALSE(pull(0, 0, 2).IsParked());
  for (const uint32_t worker : {0u, 1u}) Push(&h, Part(worker, gradient, 0, 2 * kRange));
  const auto part = pull(1, kRange / 2, kRange);  // the second range
  CHECK(part.IsParked() != asked_before);
  for (const uint32_t worker : {0u, 1u}) Push(&h, Part(worker, gradient, 2 * kRange, kBytes));
  REQUIRE_FALSE(part.IsParked());
  std::vector<uint16_t> halves(kRange / 4);
  Narrow(Cut(expected, kRange, 2 * kRange), DType::kBFloat16, halves.data());
  CHECK(std::memcmp(part->pieces[0].bytes.data(), halves.data(), kRange / 2) == 0);
}

TEST_CASE("who looks at values in memory waits for all of them") {
  Harness h(LargePlan());
  h.Grant(0, 2);
  const std::vector<float> gradient = Random(1);
  for (const uint32_t worker : {0u, 1u}) Push(&h, Part(worker, gradient, 0, 2 * kRange));
  Reply<PullResult> reply;
  h.shard.Pull({.worker = IdentityOf(0),
                .version = GlobalStep(1),
                .pieces = {Bytes(0, kRange)},
                .accepts_references = true},
               reply.done());
  CHECK(reply.IsParked());
}

TEST_CASE("where every replica counts, nobody else's gradient and no smaller grant is taken") {
  Harness h(LargePlan());
  CHECK(absl::StrContains(h.Grant(0, 1).status().message(),
                          "required is 1, and each step takes one gradient of every replica: 2"));
  View view = ViewOf(3);
  REQUIRE(h.shard.SetView(view).ok());
  const auto refused = h.shard.Push(Part(2, Random(1), 0, kRange).Kept());
  CHECK(absl::IsInvalidArgument(refused.status()));
  CHECK(absl::StrContains(refused.status().message(),
                          "push of worker 2: each step takes one "
                          "gradient of every replica, and these are "
                          "workers 0 to 1"));
}

TEST_CASE("messages are kept until their part is made, and not for a small part of them") {
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"w", {kElements}}, {"v", {50}}}), 2, 2);
  plan.mutable_optimizer()->mutable_momentum()->set_momentum(0.5f);
  plan.set_every_replica_counts(true);
  Harness h(plan);
  h.Grant(0, 2);
  const std::vector<float> gradient = Random(1);
  const auto push = [&](Message message) {
    message.Kept();
    const std::weak_ptr<const void> watched = message.arguments().tensors.owned_segments();
    REQUIRE(h.shard.Push(message.arguments()).ok());
    message.arguments().tensors = {};
    return watched;
  };
  const auto held = push(Part(0, gradient, 0, kRange));
  CHECK_FALSE(held.expired());
  CHECK(h.shard.Report().held_bytes == kBytes);
  const std::vector<float> other_gradient(50);
  const auto small =
      push(Part(0, gradient, kRange, kRange + 100).Whole(1, Shape({50}), other_gradient));
  CHECK(small.expired());
  const auto other = push(Part(1, gradient, 0, kRange));
  CHECK(held.expired());
  CHECK(other.expired());
  push(Part(0, gradient, kRange + 100, kBytes));
  push(Part(1, gradient, kRange, kBytes));
  CHECK(h.Read(1, 0) == StepWith({gradient, gradient}));
}

TEST_CASE(
    "where a replica may be left out, messages are kept until the step closes or drops them") {
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"w", {kElements}}}), 2, 1);
  plan.mutable_optimizer()->mutable_momentum()->set_momentum(0.5f);
  Harness h(plan);
  h.Grant(0, 1);
  const std::vector<float> gradient = Random(1);
  Message loser = Part(1, Random(2), 0, 2 * kRange);
  loser.Kept();
  const std::weak_ptr<const void> watched = loser.arguments().tensors.owned_segments();
  REQUIRE(h.shard.Push(loser.arguments()).ok());
  loser.arguments().tensors = {};
  CHECK_FALSE(watched.expired());
  Push(&h, Part(0, gradient, 0, 100));
  CHECK(Push(&h, Part(0, gradient, 100, kBytes)) == PushStatus::kAccepted);
  CHECK(watched.expired());
  CHECK(h.Read(1, 0) == StepWith({gradient}));
  CHECK(h.shard.Report().held_bytes == 0);
}

}  // namespace
}  // namespace lockstep::ps::test
