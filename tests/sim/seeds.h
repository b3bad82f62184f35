// Many simulated jobs, one for each seed.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "tests/sim/random.h"
#include "tests/sim/sim_cluster.h"

namespace lockstep::sim {

// `simulate` says what was wrong with the job of a seed: nothing when all was right. The first
// wrong ones are printed with their seeds, and end it.
bool AllAreRight(uint64_t seeds, const std::function<std::string(uint64_t seed)>& simulate);

// A small job that computes the same every time, on a network that may lose and delay messages.
SimOptions SmallJob(uint64_t seed, Random random);

}  // namespace lockstep::sim
