#include "ps/shard/memory_claims.h"

#include <catch2/catch.hpp>

namespace lockstep::ps {
namespace {

TEST_CASE("what is claimed and not taken yet is no room, and is again once it is given back") {
  MemoryClaims memory([] { return 100; });
  MemoryClaims::Answer first = memory.Claim(60);
  REQUIRE(first.claim != nullptr);
  CHECK(first.room == 100);
  const MemoryClaims::Answer second = memory.Claim(41);
  CHECK(second.claim == nullptr);
  CHECK(second.room == 40);
  CHECK(second.claimed == 60);
  first.claim.reset();
  CHECK(memory.Claim(100).claim != nullptr);
}

TEST_CASE("room is no more than there is now: others may have taken it") {
  uint64_t available = 100;
  MemoryClaims memory([&available] { return available; });
  const MemoryClaims::Answer first = memory.Claim(10);
  available = 30;
  CHECK(memory.Claim(1).room == 30);
}

// The processes of a run that is over end while the next one begins.
TEST_CASE("memory that others give back after the first claim is room") {
  uint64_t available = 100;
  MemoryClaims memory([&available] { return available; });
  const MemoryClaims::Answer first = memory.Claim(60);
  available = 300;
  CHECK(memory.Claim(1000).room == 240);
}

TEST_CASE("where nobody knows what there is, there is room") {
  MemoryClaims memory([]() -> std::optional<uint64_t> { return std::nullopt; });
  const MemoryClaims::Answer first = memory.Claim(uint64_t{1} << 50);
  CHECK(first.claim != nullptr);
  CHECK(memory.Claim(uint64_t{1} << 50).claim != nullptr);
}

TEST_CASE("what nobody has claimed is divided in the proportion of the claims") {
  MemoryClaims memory([] { return 100; });
  const MemoryClaims::Answer first = memory.Claim(30);
  REQUIRE(first.claim != nullptr);
  CHECK(memory.ShareOf(30) == 70);
  {
    const MemoryClaims::Answer second = memory.Claim(10);
    REQUIRE(second.claim != nullptr);
    CHECK(memory.ShareOf(30) == 45);
    CHECK(memory.ShareOf(10) == 15);
  }
  CHECK(memory.ShareOf(30) == 70);
}

}  // namespace
}  // namespace lockstep::ps
