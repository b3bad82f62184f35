// What the original hangs or loses work over. Each job here must end.
#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/log/log.h"
#include "tests/sim/laws.h"
#include "tests/sim/seeds.h"

namespace lockstep::sim {
namespace {

constexpr absl::Duration kLimit = absl::Minutes(30);
constexpr uint64_t kSeeds = 1000;

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
    CHECK(BrokenNumbers(cluster) == std::vector<std::string>());
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

// Workers die at random moments and come back, some at once and some after their lease.
std::string SimulateDeaths(uint64_t seed) {
  Random random(seed ^ 0xdead);
  SimOptions options;
  options.seed = seed;
  options.ps = static_cast<uint32_t>(random.Between(1, 3));
  options.workers = static_cast<uint32_t>(random.Between(1, 4));
  options.aggregate = static_cast<uint32_t>(random.Between(1, static_cast<int>(options.workers)));
  options.steps = random.Between(2, 8);
  if (random.Chance(0.3)) options.network.loss = 0.03;
  SimCluster cluster(options);
  cluster.StartAll();
  for (int deaths = random.Between(1, 4); deaths > 0; --deaths) {
    const auto victim = static_cast<uint32_t>(random.Below(options.workers));
    const absl::Duration when = random.Between(absl::ZeroDuration(), absl::Milliseconds(100));
    const absl::Duration pause = random.Between(absl::ZeroDuration(), absl::Seconds(12));
    cluster.events().After(when, [&cluster, victim] { cluster.worker(victim).Kill(); });
    cluster.events().After(when + pause, [&cluster, victim] {
      if (!cluster.worker(victim).end().has_value()) cluster.worker(victim).Start();
    });
  }
  if (!cluster.RunToEnd(kLimit)) return "somebody waits for ever: " + Describe(cluster);
  std::vector<std::string> broken = BrokenNumbers(cluster);
  for (const std::string& line : BrokenPerReplicaLaws(cluster)) broken.push_back(line);
  if (!cluster.end()->ok()) broken.push_back(cluster.end()->ToString());
  if (cluster.global_step() != GlobalStep(options.steps))
    broken.push_back("not all steps were made");
  return absl::StrJoin(broken, "; ");
}

TEST_CASE("whoever dies and comes back, the job ends, and its numbers are right") {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight(kSeeds, SimulateDeaths));
}

}  // namespace
}  // namespace lockstep::sim
