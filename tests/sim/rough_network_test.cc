// A network that does its worst: requests arrive twice, messages overtake one another, or come
// after the deadline of their call, and one direction between two processes is cut.
#include <catch2/catch.hpp>

#include "common/log/log.h"
#include "tests/sim/scenarios/scenario.h"

namespace lockstep::sim {
namespace {

TEST_CASE("a bad network costs time, and not a bit where every replica counts") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("rough_network", 1000));
}

TEST_CASE("jobs with a token queue, and asynchronous ones, stand a bad network") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("rough_network_fifo", 500));
  CHECK(AllAreRight("rough_network_asynchronous", 500));
}

}  // namespace
}  // namespace lockstep::sim
