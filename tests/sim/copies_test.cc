// Jobs whose shards have copies at the next ps: what dies or is cut off costs no bit of the result.
#include <catch2/catch.hpp>

#include "common/log/log.h"
#include "tests/sim/scenarios/scenario.h"

namespace lockstep::sim {
namespace {

TEST_CASE("a job with copies computes the bits of one without") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("copies", 200));
}

TEST_CASE("a ps that dies while it has a copy costs neither an epoch nor a worker") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("copy_deaths", 30));
}

TEST_CASE("a cut between two of a pair, or to one of them, costs no epoch") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("copy_cuts", 30));
}

TEST_CASE("the chief and a ps, or two ps of a pair, that die at once cost no bit") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("copy_disasters", 100));
}

TEST_CASE("with copies and standbys no role that dies or is stopped costs an epoch or a bit") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("copy_standbys", 15));
}

TEST_CASE("a ps that was stopped is fenced when it goes on, whatever else happens meanwhile") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("copy_stops", 15));
}

TEST_CASE("a job without copies waits for a ps that is stopped") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("ps_stops", 30));
}

}  // namespace
}  // namespace lockstep::sim
