// What peers may send that no job has: sizes that wrap, steps at the ends of their type, counts
// without end.
#include <catch2/catch.hpp>
#include <limits>

#include "absl/strings/match.h"
#include "common/base/exit_code.h"
#include "common/base/limits.h"
#include "common/base/not_kept.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::Harness;
using test::IdentityOf;
using test::kCommand;
using test::Message;
using test::OneVariable;
using test::PlacementOf;
using test::PlanOf;
using test::Reply;

constexpr int64_t kMax = std::numeric_limits<int64_t>::max();
constexpr int64_t kMin = std::numeric_limits<int64_t>::min();

absl::Status Create(const CreateVariablesRequest& plan, const ShardOptions& options = {}) {
  Shard shard(options);
  REQUIRE(shard.SetView(test::ViewOf(1)).ok());
  const absl::Status status = shard.CreateVariables(plan).status();
  CHECK_FALSE(shard.GetView().has_variables == !status.ok());
  return status;
}

TEST_CASE("variables whose bytes wrap in their sum are refused before memory is asked for") {
  CreateVariablesRequest plan = PlanOf(PlacementOf({{.name = "a", .dims = {int64_t{1} << 59, 1}},
                                                    {.name = "b", .dims = {int64_t{1} << 59, 1}},
                                                    {.name = "c", .dims = {int64_t{1} << 59, 1}},
                                                    {.name = "d", .dims = {int64_t{1} << 59, 1}}}),
                                       1, 1);
  for (VariableSpec& spec : *plan.mutable_placement()->mutable_variables()) {
    spec.set_dtype(FLOAT64);
    spec.set_sparse(true);
    spec.mutable_initializer()->mutable_constant()->set_value(1);
  }
  plan.set_shared_memory(true);
  bool is_asked = false;
  const absl::Status status =
      Create(plan, {.make_value_memory = [&](uint64_t) -> std::optional<LentMemory> {
               is_asked = true;
               return std::nullopt;
             }});
  CHECK(absl::IsFailedPrecondition(status));
  CHECK(absl::StrContains(status.message(), "variable \"b\" (1)"));
  CHECK_FALSE(is_asked);
}

TEST_CASE("a variable that no machine has memory for is refused with its bytes") {
  const absl::Status status = Create(PlanOf(PlacementOf({{"w", {int64_t{1} << 45}}}), 1, 1));
  CHECK(absl::IsResourceExhausted(status));
  CHECK(ExitCodeFor(status) == ExitCode::kBadConfiguration);
  for (const char* part : {"variable \"w\" (0)", "140737488355328 bytes", "Remedy: "}) {
    CAPTURE(part, status.message());
    CHECK(absl::StrContains(status.message(), part));
  }
}

TEST_CASE("variables that the process has no memory for are refused with what it has") {
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"a", {100}}, {"b", {100}}}), 1, 1);
  plan.mutable_optimizer()->mutable_momentum()->set_momentum(0.9f);
  // A value, the next one, a slot and the gradient of a step, of 400 bytes each, twice.
  const auto create_with = [&plan](uint64_t bytes) {
    MemoryClaims memory([bytes] { return bytes; });
    return Create(plan, {.memory = &memory});
  };
  CHECK(create_with(3200).ok());
  const absl::Status status = create_with(3199);
  CHECK(absl::IsResourceExhausted(status));
  CHECK(ExitCodeFor(status) == ExitCode::kBadConfiguration);
  for (const char* part :
       {"variable \"b\" (1)", "2 values, 1 slots, 1 gradients take 1600 bytes",
        "before it 3200 bytes", "this process can take 3199 bytes", "Remedy: "}) {
    CAPTURE(part, status.message());
    CHECK(absl::StrContains(status.message(), part));
  }
}

TEST_CASE("a variable whose slots could not be saved under its name is refused") {
  CHECK(Create(PlanOf(PlacementOf({{std::string(4000, 'w'), {1}}}), 1, 1)).ok());
  const absl::Status refused = Create(PlanOf(PlacementOf({{std::string(4001, 'w'), {1}}}), 1, 1));
  CHECK(absl::IsInvalidArgument(refused));
  CHECK(refused.message() == "variable 0: expected a name of at most 4000 bytes, got 4001");
}

TEST_CASE("tokens are counted, not made, and their number has an end") {
  CreateVariablesRequest plan = OneVariable(1, 1, FIFO);
  plan.set_init_tokens(int64_t{1} << 30);
  CHECK(Create(plan).ok());
  plan.set_init_tokens(int64_t{1} << 59);
  const absl::Status status = Create(plan);
  CHECK(absl::IsInvalidArgument(status));
  CHECK(absl::StrContains(status.message(), "init_tokens"));
}

TEST_CASE("a job begins and ends at steps that can be counted on from") {
  CreateVariablesRequest plan = OneVariable();
  for (const int64_t step : {int64_t{-1}, kMin, kMax}) {
    plan.set_start_step(step);
    CHECK(absl::IsInvalidArgument(Create(plan)));
  }
  plan = OneVariable();
  plan.set_asynchronous(true);
  plan.set_end_step(kMax);
  CHECK(absl::IsInvalidArgument(Create(plan)));
}

TEST_CASE("a grant that would commit a step after one that is not committed is refused") {
  Harness h(OneVariable());
  h.Grant(0, 1);
  h.Push(0, 1, 0, 0, {1});
  const GrantArguments next{.command = kCommand, .step = GlobalStep(1), .commit = true};
  const absl::Status refused = h.Grant(next).status();
  CHECK(absl::IsFailedPrecondition(refused));
  CHECK(absl::StrContains(refused.message(), "the job is at step 0"));
  REQUIRE(h.shard.CommitStep(kCommand, GlobalStep(0), false).ok());
  const auto closed = h.Grant(next);
  h.Push(0, 2, 1, 0, {1});
  CHECK(closed.status().ok());
  CHECK(h.shard.GetView().global_step == GlobalStep(2));
}

TEST_CASE("a step that closes before it may be committed says so, and can be committed later") {
  Harness h(OneVariable());
  const auto first = h.Grant(0, 1);
  // In time: the step before it may yet be granted again, with commit.
  const auto second = h.Grant({.command = kCommand, .step = GlobalStep(1), .commit = true});
  REQUIRE(second.IsParked());
  h.Push(0, 1, 0, 0, {1});
  h.Push(0, 2, 1, 0, {1});
  CHECK(first.status().ok());
  CHECK(absl::IsFailedPrecondition(second.status()));
  CHECK(h.shard.GetView().shard_step == GlobalStep(2));
  for (const int64_t step : {0, 1}) {
    const auto committed = h.shard.CommitStep(kCommand, GlobalStep(step), false);
    REQUIRE(committed.ok());
    CHECK(*committed == GlobalStep(step + 1));
  }
}

TEST_CASE("steps at the ends of their type are answered like any others") {
  for (const bool asynchronous : {false, true}) {
    CreateVariablesRequest plan = OneVariable();
    plan.set_asynchronous(asynchronous);
    if (asynchronous) {
      plan.mutable_optimizer()->mutable_learning_rate()->set_base(1);
      plan.set_max_staleness(kMax);
    }
    Harness h(plan);
    uint64_t push_seq = 0;
    for (const int64_t step : {kMin, kMin + 1, int64_t{-1}, kMax - 1, kMax}) {
      CAPTURE(asynchronous, step);
      for (const bool keep : {false, true}) {
        h.Grant({.command = kCommand, .step = GlobalStep(step), .keep_slots = keep});
      }
      h.shard.CommitStep(kCommand, GlobalStep(step), false).IgnoreError();
      h.shard.Save(kCommand, GlobalStep(step), "/dev/null/nowhere").IgnoreError();
      h.shard.ReleaseSnapshot(kCommand, GlobalStep(step)).IgnoreError();
      h.Push(0, ++push_seq, step, 0, {1});
      h.Pull(0, step, {{VariableId(0)}});
      for (const char* slot : {"", "momentum"}) {
        PullArguments arguments{IdentityOf(0), GlobalStep(step), {{VariableId(0)}}, true, slot};
        Reply<PullResult> reply;
        h.shard.Pull(arguments, reply.done());
        CHECK_FALSE(reply.IsParked());
      }
    }
    CHECK(h.shard.Report().variables == 1);
  }
}

TEST_CASE("a shard without gradients answers a save of any version while nothing is granted") {
  CreateVariablesRequest plan = PlanOf(
      PlacementOf({{"w", {1}}, {.name = "idle", .dims = {1}, .shard = 1, .frozen = true}}, 2), 1,
      1);
  const bool is_frozen = GENERATE(true, false);
  if (!is_frozen) {
    // Of the second loss, whose turn comes in no step before the first.
    plan.clear_optimizer();
    for (const char* loss : {"w's", "idle's"}) {
      LossDef* const def = plan.add_losses();
      def->set_name(loss);
      def->mutable_optimizer()->mutable_sgd();
      plan.mutable_placement()->add_turns(1);
    }
    VariableSpec* const idle = plan.mutable_placement()->mutable_variables(1);
    idle->set_frozen(false);
    idle->set_loss(2);
    plan.mutable_placement()->mutable_variables(0)->set_loss(1);
  }
  Shard shard((ShardOptions()));
  REQUIRE(shard.SetView(test::ViewOf(1, 1)).ok());
  REQUIRE(shard.CreateVariables(plan).ok());
  for (const int64_t version : {kMin, kMin + 1, kMax - 1, kMax}) {
    CAPTURE(is_frozen, version);
    const absl::Status status =
        shard.Save(kCommand, GlobalStep(version), "/dev/null/nowhere").status();
    CHECK_FALSE(status.ok());
    // Of frozen variables every version has the same values: the folder alone is at fault.
    CHECK(IsNotKept(status) == !is_frozen);
  }
}

TEST_CASE("a gradient with the first stamp of its type is the stalest that there is") {
  CreateVariablesRequest plan = OneVariable();
  plan.set_asynchronous(true);
  plan.mutable_optimizer()->mutable_learning_rate()->set_base(1);
  Harness h(plan);
  CHECK(h.Push(0, 1, kMin, 0, {1}) == PushStatus::kAccepted);
  std::vector<uint64_t> staleness(64);
  staleness.back() = 1;
  CHECK(h.shard.Report().staleness == staleness);
}

TEST_CASE("grants of steps that never come wait in bounded number") {
  CreateVariablesRequest plan = OneVariable();
  plan.set_asynchronous(true);
  Harness h(plan);
  std::vector<test::Reply<ClosedStep>> waiting;
  for (size_t i = 0; i < limits::kMaxParkedGrants; ++i) {
    waiting.push_back(h.Grant(1'000 + static_cast<int64_t>(i), 1));
  }
  CHECK(absl::IsResourceExhausted(h.Grant(2'000, 1).status()));
  for (const auto& grant : waiting) CHECK(grant.IsParked());
}

TEST_CASE("a push far ahead of its worker's others is refused, and those stay welcome") {
  Harness h(OneVariable());
  const auto push = [&](uint64_t push_seq) {
    return h.shard.Push(Message(IdentityOf(0), push_seq, 0).Whole(0, Shape({1}), {1}).Ready())
        .status();
  };
  const uint64_t most = std::numeric_limits<uint64_t>::max();
  CHECK(absl::IsOutOfRange(push(most)));
  CHECK(push(1).ok());
  const absl::Status refused = push(most);
  CHECK(absl::IsOutOfRange(refused));
  CHECK(absl::StrContains(refused.message(), "push_seq of worker 0"));
  h.Grant(0, 1);
  CHECK(h.Push(0, 2, 1, 0, {1}) == PushStatus::kAccepted);
}

}  // namespace
}  // namespace lockstep::ps
