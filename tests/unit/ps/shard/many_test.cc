// Ten thousand pieces, members and variables: work that grows with their number, not its square.
#include <catch2/catch.hpp>

#include "ps/shard/catalog.h"
#include "ps/shard/held_budget.h"
#include "tests/support/growth.h"
#include "tests/unit/ps/shard/shard_harness.h"

namespace lockstep::ps {
namespace {

using lockstep::test::CheckGrowth;
using test::Harness;
using test::IdentityOf;
using test::kCommand;
using test::PlanOf;

Placement ManyVariables(size_t count) {
  std::vector<test::SpecText> specs;
  for (size_t i = 0; i < count; ++i) specs.push_back({absl::StrCat("v", i), {1}});
  return test::PlacementOf(specs);
}

std::shared_ptr<test::Message> OneOfEach(size_t count, uint64_t push_seq, int64_t stamp) {
  auto message = std::make_shared<test::Message>(IdentityOf(0), push_seq, stamp);
  for (uint32_t i = 0; i < count; ++i) message->Whole(i, Shape({1}), {1});
  message->Ready(1 << 20);
  return message;
}

TEST_CASE("a push of many pieces is checked piece by piece") {
  CheckGrowth(10'000, [](size_t count) {
    auto catalog =
        std::make_shared<const Catalog>(*Catalog::Create(ManyVariables(count), ShardIndex(0)));
    return [catalog, message = OneOfEach(count, 1, 0)] {
      CHECK(catalog->ResolvePush(message->arguments()).ok());
    };
  });
}

TEST_CASE("a variable twice in a push of many pieces is found") {
  const auto catalog = Catalog::Create(ManyVariables(2'500), ShardIndex(0));
  const auto message = OneOfEach(2'500, 1, 0);
  message->Whole(7, Shape({1}), {1});
  CHECK(absl::IsInvalidArgument(catalog->ResolvePush(message->Ready()).status()));
}

TEST_CASE("a step of many variables, with pulls that wait for each, closes one by one") {
  CheckGrowth(2'500, [](size_t count) {
    auto h = std::make_shared<Harness>(PlanOf(ManyVariables(count), 1, 1));
    return [h, count, message = OneOfEach(count, 1, 0)] {
      int answered = 0;
      for (uint32_t i = 0; i < count; ++i) {
        h->shard.Pull({IdentityOf(0), GlobalStep(1), {{VariableId(i)}}},
                      [&](const absl::StatusOr<PullResult>& result) { answered += result.ok(); });
      }
      std::vector<PullPiece> all;
      for (uint32_t i = 0; i < count; ++i) all.push_back({VariableId(i)});
      const auto whole = h->Pull(0, 1, std::move(all));
      const auto closed = h->Grant(0, 1);
      REQUIRE(h->shard.Push(message->arguments()).ok());
      CHECK(closed.status().ok());
      CHECK(whole.status().ok());
      CHECK(answered == static_cast<int>(count));
    };
  });
}

TEST_CASE("room for many variables' gradients is found one by one, however little there is") {
  CheckGrowth(2'500, [](size_t count) {
    // The first closes last, and is as large as all others.
    std::vector<HeldBudget::Kind> kinds(count, {Shape({16}), 64});
    kinds[0] = {Shape({static_cast<int64_t>(16 * count)}), 64 * count};
    auto budget = std::make_shared<HeldBudget>(std::move(kinds), 64 * count + 64, 1);
    return [budget, count] {
      size_t reserved = 0;
      for (size_t i = count - 1; i > 0; --i) reserved += budget->Reserve(i, 64);
      CHECK(reserved == count - 1);
    };
  });
}

TEST_CASE("a push of many pieces that did not come whole is given up one by one") {
  CheckGrowth(2'500, [](size_t count) {
    std::vector<test::SpecText> specs;
    for (size_t i = 0; i < count; ++i) specs.push_back({absl::StrCat("v", i), {2}});
    auto h = std::make_shared<Harness>(PlanOf(test::PlacementOf(specs), 2, 2));
    auto half = std::make_shared<test::Message>(IdentityOf(1), 1, 0);
    auto whole = std::make_shared<test::Message>(IdentityOf(0), 1, 0);
    for (uint32_t i = 0; i < count; ++i) {
      half->Chunk(i, Shape({2}), {1, 1}, 0, 4);
      whole->Whole(i, Shape({2}), {1, 1});
    }
    return [h, half, whole] {
      h->Grant(0, 1);
      REQUIRE(h->shard.Push(half->Ready(1 << 20)).ok());
      // Each variable that closes drops the half of the other worker.
      REQUIRE(h->shard.Push(whole->Ready(1 << 20)).ok());
      CHECK(h->shard.Report().held_bytes == 0);
      CHECK(h->shard.Report().stale > 0);
    };
  });
}

}  // namespace
}  // namespace lockstep::ps
