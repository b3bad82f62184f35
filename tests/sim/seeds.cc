#include "tests/sim/seeds.h"

#include <iostream>

namespace lockstep::sim {
namespace {

constexpr int kMostPrinted = 5;

}  // namespace

bool AllAreRight(uint64_t seeds, const std::function<std::string(uint64_t seed)>& simulate) {
  int wrong = 0;
  for (uint64_t seed = 0; seed < seeds && wrong < kMostPrinted; ++seed) {
    const std::string what = simulate(seed);
    if (what.empty()) continue;
    ++wrong;
    std::cerr << "seed " << seed << ": " << what << "\n";
  }
  return wrong == 0;
}

SimOptions SmallJob(uint64_t seed, Random random) {
  SimOptions options;
  options.seed = seed;
  options.ps = static_cast<uint32_t>(random.Between(1, 3));
  options.workers = static_cast<uint32_t>(random.Between(1, 4));
  options.aggregate = options.workers;
  options.steps = random.Between(1, 10);
  options.same_every_time = true;
  if (random.Chance(0.3)) options.network.loss = 0.03;
  if (random.Chance(0.3)) options.network.most_delay = absl::Milliseconds(30);
  return options;
}

}  // namespace lockstep::sim
