// What is refused before memory is taken, and what is not.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using test::PlacementOf;
using test::PlanOf;

constexpr uint64_t kGibibyte = uint64_t{1} << 30;

absl::Status Create(const CreateVariablesRequest& plan, uint64_t bytes, bool is_copy = false,
                    uint64_t held_bytes_budget = 0) {
  MemoryClaims memory([bytes] { return bytes; });
  Shard shard({.held_bytes_budget = held_bytes_budget, .memory = &memory});
  View view = test::ViewOf(1);
  view.is_copy = is_copy;
  REQUIRE(shard.SetView(view).ok());
  return shard.CreateVariables(plan).status();
}

// Of a variable of 400 bytes and this many workers.
CreateVariablesRequest Plan(uint32_t workers, TransportDef::SharedMemory shared_memory) {
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"w", {100}}}), workers, workers);
  plan.mutable_transport()->set_shared_memory(shared_memory);
  return plan;
}

// It fits with these bytes, and not with one less.
void CheckNeed(const CreateVariablesRequest& plan, uint64_t bytes, bool is_copy = false) {
  CAPTURE(bytes, is_copy);
  CHECK(Create(plan, bytes, is_copy).ok());
  const absl::Status refused = Create(plan, bytes - 1, is_copy);
  CHECK(absl::IsResourceExhausted(refused));
  CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
  CHECK(absl::StrContains(refused.message(), absl::StrCat("take ", bytes, " bytes")));
}

TEST_CASE("a large model whose gradients come in messages is refused in a small container") {
  CreateVariablesRequest plan = PlanOf(PlacementOf({{"w", {int64_t{1} << 28}}}), 4, 4);
  plan.mutable_transport()->set_shared_memory(TransportDef::OFF);
  const absl::Status refused = Create(plan, 3 * kGibibyte);
  CHECK(absl::IsResourceExhausted(refused));
  for (const char* part : {"variable \"w\" (0)", "2 values, 0 slots, 4 gradients",
                           "take 6442450944 bytes", "can take 3221225472 bytes", "Remedy: "}) {
    CAPTURE(part, refused.message());
    CHECK(absl::StrContains(refused.message(), part));
  }
}

TEST_CASE("gradients are counted where all of them come in messages, as they come") {
  CreateVariablesRequest plan = Plan(4, TransportDef::OFF);
  CheckNeed(plan, (2 + 4) * 400);
  plan.mutable_transport()->set_wire_type(BFLOAT16);
  CheckNeed(plan, (2 + 4 / 2) * 400);
  plan.mutable_sync()->set_replicas_to_aggregate(3);
  plan.mutable_transport()->clear_wire_type();
  CheckNeed(plan, (2 + 3) * 400);
}

// From 256 KiB on they lie in the messages that brought them, and go with their variable.
TEST_CASE("of large variables the gradients of one are counted, and none that go range by range") {
  constexpr uint64_t kBytes = uint64_t{1} << 20;
  constexpr int64_t kElements = kBytes / sizeof(float);
  CreateVariablesRequest plan =
      PlanOf(PlacementOf({{"a", {kElements}}, {"b", {2 * kElements}}, {"c", {kElements}}}), 3, 3);
  plan.mutable_transport()->set_shared_memory(TransportDef::OFF);
  const uint64_t values = 2 * 4 * kBytes;
  CHECK(Create(plan, values + 3 * 2 * kBytes).ok());
  CHECK(absl::IsResourceExhausted(Create(plan, values + 3 * 2 * kBytes - 1)));
  plan.set_every_replica_counts(true);
  CHECK(Create(plan, values).ok());
  CHECK(absl::IsResourceExhausted(Create(plan, values - 1)));
}

TEST_CASE("no more gradients are counted than the budget allows") {
  const CreateVariablesRequest plan =
      PlanOf(PlacementOf({{"a", {100}}, {"b", {100}}, {"c", {100}}}), 2, 2);
  constexpr uint64_t kNeed = 3 * 2 * 400 + 1000;
  CHECK(Create(plan, kNeed, /*is_copy=*/false, 1000).ok());
  CHECK(absl::IsResourceExhausted(Create(plan, kNeed - 1, /*is_copy=*/false, 1000)));
}

TEST_CASE("in shared memory three versions are counted, and no gradients") {
  const auto shared_memory = GENERATE(TransportDef::COPY, TransportDef::MAP);
  CheckNeed(Plan(4, shared_memory), 3 * 400);
}

TEST_CASE("gradients are counted where they are copied out of shared memory") {
  CreateVariablesRequest plan = Plan(4, TransportDef::COPY);
  plan.set_token_policy(FIFO);
  CheckNeed(plan, (3 + 4) * 400);
  plan = Plan(4, TransportDef::COPY);
  plan.set_asynchronous(true);
  plan.set_replicas_to_aggregate(1);
  CheckNeed(plan, (3 + 1) * 400);
}

// Under COPY and MAP nobody knows before whether workers share memory. What the process has beside
// what is certain is all that gradients in messages may take; here less than that of three.
TEST_CASE("gradients of workers that share no memory take no more than is left") {
  constexpr uint64_t kCertain = 3 * 3 * 400;
  constexpr uint64_t kInFlight = 2 * (uint64_t{6} << 20);
  CreateVariablesRequest plan =
      PlanOf(PlacementOf({{"a", {100}}, {"b", {100}}, {"c", {100}}}), 2, 2);
  plan.mutable_transport()->set_shared_memory(TransportDef::COPY);
  const std::vector<float> gradient(100, 1);
  for (const uint64_t left : {uint64_t{6 * 400}, uint64_t{1100}}) {
    CAPTURE(left);
    MemoryClaims memory([left] { return kCertain + kInFlight + left; });
    test::Harness h(plan, ShardOptions{.memory = &memory});
    const auto push = [&](uint32_t worker, uint32_t variable) {
      return h.shard
          .Push(test::Message(test::IdentityOf(worker), 1, 0)
                    .Whole(variable, Shape({100}), gradient)
                    .Ready())
          .status();
    };
    const auto closed = h.Grant(0, 2, 1.0f);
    CHECK(push(0, 2).ok());
    const absl::Status early = push(0, 1);
    CHECK(early.ok() == (left == 6 * 400));
    if (!early.ok()) {
      CHECK_THAT(std::string(early.message()), Catch::Contains("400 of 1100 are held"));
    }
    // It goes on in the order in which variables close.
    CHECK(push(1, 2).ok());
    for (const uint32_t variable : {1, 0}) {
      for (const uint32_t worker : {0, 1}) CHECK(push(worker, variable).ok());
    }
    CHECK_FALSE(closed.IsParked());
  }
}

TEST_CASE("a primary has the means that it sends besides, and a copy those that come") {
  CreateVariablesRequest plan = Plan(2, TransportDef::COPY);
  plan.mutable_sync()->set_ps_replicas(1);
  plan.mutable_sync()->set_replicas_to_aggregate(2);
  CheckNeed(plan, (3 + 1) * 400);
  CheckNeed(plan, 3 * 400, /*is_copy=*/true);
  plan.mutable_transport()->set_shared_memory(TransportDef::OFF);
  CheckNeed(plan, (2 + 2 + 1) * 400);
  CheckNeed(plan, (2 + 1) * 400, /*is_copy=*/true);
}

TEST_CASE("a ps has room for its shard and the copy that it keeps, or refuses the second") {
  CreateVariablesRequest plan = Plan(2, TransportDef::OFF);
  plan.mutable_sync()->set_ps_replicas(1);
  plan.mutable_sync()->set_replicas_to_aggregate(2);
  constexpr uint64_t kOwn = 5 * 400, kCopy = 3 * 400;
  View of_copy = test::ViewOf(0);
  of_copy.is_copy = true;
  for (const uint64_t bytes : {kOwn + kCopy, kOwn + kCopy - 1}) {
    CAPTURE(bytes);
    // Nothing is taken yet when the second asks.
    MemoryClaims memory([bytes] { return bytes; });
    Shard own({.memory = &memory});
    Shard copy({.memory = &memory});
    REQUIRE(own.SetView(test::ViewOf(1)).ok());
    REQUIRE(copy.SetView(of_copy).ok());
    REQUIRE(own.CreateVariables(plan).ok());
    const absl::Status second = copy.CreateVariables(plan).status();
    CHECK(second.ok() == (bytes == kOwn + kCopy));
    if (second.ok()) continue;
    CHECK_THAT(std::string(second.message()),
               Catch::Contains("can take 1199 bytes beside the 2000 bytes of the other shard"));
    View next = test::ViewOf(1);
    next.epoch = Epoch(2);
    REQUIRE(own.SetView(next).ok());
    CHECK(copy.CreateVariables(plan).ok());
  }
}

}  // namespace
}  // namespace lockstep::ps
