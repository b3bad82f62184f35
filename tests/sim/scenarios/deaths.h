// Deaths of the processes of a job that saves, each of which is started again.
#pragma once

#include <cstdint>

#include "absl/time/time.h"
#include "tests/sim/random.h"
#include "tests/sim/sim_cluster.h"

namespace lockstep::sim {

// Of a ps that is stopped: longer than every lease.
inline constexpr absl::Duration kLongestStop = absl::Seconds(20);

// While the job trains: afterwards the ps that are left have nothing to go on for.
bool Trains(SimCluster* cluster);

// At once, or in the middle of its next save; it is started again after `pause`. Nothing happens to
// one that is dead, and after the training.
void KillPs(uint32_t index, absl::Duration pause, Random* random, SimCluster* cluster);

// The same; in the middle of its next commit of a checkpoint.
void KillChief(absl::Duration pause, Random* random, SimCluster* cluster);

}  // namespace lockstep::sim
