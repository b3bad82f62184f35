// Many random jobs: nobody waits for ever, and the laws hold. A seed that fails is the case to
// replay: SimulateOne(seed) does the same again.
#include "tests/sim/laws.h"

#include <catch2/catch.hpp>

#include "common/log/log.h"
#include "tests/sim/seeds.h"

namespace lockstep::sim {
namespace {

constexpr uint64_t kSeeds = 5000;

// A job that TensorFlow's rules allow.
SimOptions RandomOptions(uint64_t seed, TokenPolicy policy) {
  Random random(seed ^ 0x5eed);
  SimOptions options;
  options.seed = seed;
  options.token_policy = policy;
  options.ps = static_cast<uint32_t>(random.Between(1, 3));
  options.workers = static_cast<uint32_t>(random.Between(1, 5));
  options.aggregate = static_cast<uint32_t>(
      random.Between(1, policy == FIFO ? 6 : static_cast<int>(options.workers)));
  options.steps = random.Between(1, 6);
  if (policy == FIFO && random.Chance(0.5)) {
    const int fewest =
        std::max(0, static_cast<int>(options.aggregate) - static_cast<int>(options.workers));
    options.init_tokens = random.Between(fewest, static_cast<int>(options.aggregate) + 2);
  }
  options.variables.clear();
  for (int i = random.Between(1, 4); i > 0; --i) options.variables.push_back(random.Between(1, 4));
  if (random.Chance(0.3)) options.network.loss = 0.05;
  if (random.Chance(0.5)) options.network.late = 0.5;
  if (random.Chance(0.3)) options.network.most_delay = absl::Milliseconds(50);
  if (random.Chance(0.3)) options.most_compute = absl::Milliseconds(100);
  return options;
}

// What went wrong; empty when nothing did.
std::string SimulateOne(uint64_t seed, TokenPolicy policy) {
  SimCluster cluster(RandomOptions(seed, policy));
  return RunAndJudge(&cluster);
}

void CheckSeeds(TokenPolicy policy) {
  REQUIRE(log::Init("simulation", "error").ok());
  CHECK(AllAreRight(kSeeds, [policy](uint64_t seed) { return SimulateOne(seed, policy); }));
}

TEST_CASE("the laws of the token queue hold in random jobs") { CheckSeeds(FIFO); }

TEST_CASE("the laws of one token per replica hold in random jobs") { CheckSeeds(PER_REPLICA); }

}  // namespace
}  // namespace lockstep::sim
