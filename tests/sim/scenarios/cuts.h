// Cuts of the network in one direction between two processes that call one another.
#pragma once

#include <memory>

#include "absl/time/time.h"
#include "tests/sim/random.h"
#include "tests/sim/sim_cluster.h"

namespace lockstep::sim {

inline constexpr absl::Duration kLongestCut = absl::Seconds(20);

struct Cuts {
  absl::Duration longest = kLongestCut;
  bool overlap = true;  // false: what one has held arrives before the next one
};

// Somebody sets the wall clock, a few times.
void PlanClockChanges(const std::shared_ptr<Random>& random, SimCluster* cluster);

// Plans a few, one after the other or at the same time. `cluster` outlives them.
void PlanCuts(const Cuts& cuts, const std::shared_ptr<Random>& random, SimCluster* cluster);

}  // namespace lockstep::sim
