// Many random jobs: nobody waits for ever, and the laws hold.
#include <catch2/catch.hpp>

#include "common/log/log.h"
#include "tests/sim/scenarios/scenario.h"

namespace lockstep::sim {
namespace {

constexpr uint64_t kSeeds = 5000;

TEST_CASE("the laws of the token queue hold in random jobs") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("fifo", kSeeds));
}

TEST_CASE("the laws of one token per replica hold in random jobs") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("per_replica", kSeeds));
}

}  // namespace
}  // namespace lockstep::sim
