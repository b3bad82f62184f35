// Variables so large that ranges of them close, and are shown, before the rest has arrived.
#include <catch2/catch.hpp>

#include "common/log/log.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/scenario.h"

namespace lockstep::sim {
namespace {

TEST_CASE("ranges of large variables close early with the right values on a bad network") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("large_variables", 30));
}

TEST_CASE("values of a range are shown before the rest of the variable has closed") {
  REQUIRE(log::Init("simulation", "error").ok());
  uint64_t shown_early = 0;
  for (uint64_t seed = 0; seed < 30; ++seed) {
    SimCluster cluster(LargeJob(seed));
    cluster.StartAll();
    REQUIRE(cluster.RunToEnd(kLimit));
    CHECK(cluster.violation() == "");
    shown_early += cluster.shown_early();
  }
  CHECK(shown_early > 0);
}

}  // namespace
}  // namespace lockstep::sim
