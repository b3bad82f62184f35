// Asynchronous jobs: nobody waits for anybody, whoever dies, and the numbers are right.
#include <catch2/catch.hpp>

#include "common/log/log.h"
#include "tests/sim/scenarios/scenario.h"

namespace lockstep::sim {
namespace {

TEST_CASE("asynchronous jobs end at their last step, and every value is what its gradients make") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("asynchronous", 1000));
  CHECK(AllAreRight("asynchronous_deaths", 1000));
}

}  // namespace
}  // namespace lockstep::sim
