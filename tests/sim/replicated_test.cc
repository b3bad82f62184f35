// Replicated jobs whose workers, and whose chief, die at any moment: the real chief, shards,
// strategies, group sources and reducers. No run hangs, and no worker ever has other bits.
#include <catch2/catch.hpp>

#include "common/log/log.h"
#include "tests/sim/scenarios/scenario.h"

namespace lockstep::sim {
namespace {

TEST_CASE("workers that die at any moment cost time and not a bit") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("replicated_deaths", 1000));
}

TEST_CASE("several at once end the job well, or say that its variables are lost") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("replicated_disaster", 1000));
}

TEST_CASE("a worker that lives and has the last version stores it") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("replicated_ends", 500));
}

}  // namespace
}  // namespace lockstep::sim
