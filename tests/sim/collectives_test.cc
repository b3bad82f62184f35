// Many random groups of workers over a network that loses, delays and reorders messages: nobody
// waits for ever, all have the bits of one process, and who dies or hangs is named in time.
#include "tests/sim/scenarios/collectives.h"

#include <catch2/catch.hpp>

#include "common/log/log.h"
#include "tests/sim/scenarios/scenario.h"

namespace lockstep::sim {
namespace {

TEST_CASE("random groups reduce to the bits of one process over a bad network") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("collectives", 500));
}

TEST_CASE("a worker that dies is named in time, and the next view repeats the step") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("collective_death", 2000));
}

TEST_CASE("a worker that hangs is named in time, and the next view repeats the step") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("collective_hang", 500));
}

TEST_CASE("most accidents come before the last step is over, and so cost a view") {
  REQUIRE(log::Init("simulation", "error").ok());
  constexpr uint64_t kSeeds = 100;
  for (const Accident accident : {Accident::kDeath, Accident::kHang}) {
    uint64_t views = 0;
    for (uint64_t seed = 0; seed < kSeeds; ++seed) {
      SimPeers peers(PeersWithAccident(seed, accident));
      CHECK(peers.Run() == "");
      views += peers.views();
    }
    CHECK(views > kSeeds * 3 / 2);
  }
}

}  // namespace
}  // namespace lockstep::sim
