// What the original hangs or loses work over. Each job here must end.
#include <catch2/catch.hpp>

#include "common/log/log.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/scenario.h"

namespace lockstep::sim {
namespace {

// tensorflow#5022: there, the token is lost with its holder, and with as many replicas as are
// aggregated the job stands still for ever.
TEST_CASE("a worker that dies holding a token is replaced, and the job goes on") {
  REQUIRE(log::Init("simulation", "error").ok());
  for (uint64_t seed = 0; seed < 50; ++seed) {
    SimCluster cluster({.seed = seed, .workers = 3, .aggregate = 3, .steps = 6});
    cluster.StartAll();
    // It has the token of step 2 and has not pushed with it.
    REQUIRE(
        cluster.RunUntil([&] { return cluster.worker(1).local_step() == GlobalStep(2); }, kLimit));
    cluster.worker(1).Kill();
    REQUIRE_FALSE(
        cluster.RunUntil([&] { return cluster.global_step() > GlobalStep(3); }, absl::Seconds(30)));
    cluster.worker(1).Start();
    REQUIRE(cluster.RunToEnd(kLimit));
    CHECK(cluster.end()->ok());
    CHECK(cluster.global_step() == GlobalStep(6));
    CHECK(cluster.violation() == "");
  }
}

TEST_CASE("with a backup nobody notices a worker that dies holding a token") {
  REQUIRE(log::Init("simulation", "error").ok());
  SimCluster cluster({.seed = 3, .workers = 3, .aggregate = 2, .steps = 6});
  cluster.StartAll();
  REQUIRE(
      cluster.RunUntil([&] { return cluster.worker(1).local_step() == GlobalStep(2); }, kLimit));
  cluster.worker(1).Kill();
  REQUIRE(cluster.RunUntil([&] { return cluster.end().has_value(); }, absl::Seconds(10)));
  CHECK(cluster.end()->ok());
  CHECK(cluster.worker(0).end()->ok());
  CHECK(cluster.worker(2).end()->ok());
}

// tensorflow#7970: there, the chief's session closes and workers wait in the token queue for ever.
TEST_CASE("the end of the job reaches workers that wait for a token, and those that compute") {
  REQUIRE(log::Init("simulation", "error").ok());
  for (const TokenPolicy policy : {FIFO, PER_REPLICA}) {
    SimCluster cluster({.seed = 4,
                        .workers = 4,
                        .aggregate = 2,
                        .token_policy = policy,
                        .steps = 3,
                        .most_compute = absl::Seconds(1)});
    cluster.StartAll();
    REQUIRE(cluster.RunToEnd(kLimit));
    for (uint32_t i = 0; i < 4; ++i) CHECK(cluster.worker(i).end()->ok());
  }
}

TEST_CASE("whoever dies and comes back, the job ends, and its numbers are right") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight("worker_deaths", 1000));
}

}  // namespace
}  // namespace lockstep::sim
