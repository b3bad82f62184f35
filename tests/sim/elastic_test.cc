// A job whose workers come and go: the real chief, shards and strategies.
#include <catch2/catch.hpp>

#include "common/log/log.h"
#include "tests/sim/scenarios/scenario.h"

namespace lockstep::sim {
namespace {

TEST_CASE("each step of an elastic job has the gradients of its replica view") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("elastic", 1000));
}

}  // namespace
}  // namespace lockstep::sim
