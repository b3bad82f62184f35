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

}  // namespace lockstep::sim
