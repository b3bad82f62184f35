// Ps die at any moment and come back with nothing. With every replica needed the job computes the
// same as without, to the last bit.
#include <catch2/catch.hpp>

#include "common/log/log.h"
#include "tests/sim/scenarios/scenario.h"

namespace lockstep::sim {
namespace {

TEST_CASE("a ps that dies at any moment costs steps and not a bit of the result") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("ps_deaths", 500));
}

}  // namespace
}  // namespace lockstep::sim
