// Jobs with chiefs that stand by.
#pragma once

#include <string>
#include <vector>

#include "tests/sim/random.h"
#include "tests/sim/sim_cluster.h"

namespace lockstep::sim {

// The chief is killed, told to end or suspended, and another one stands by. Nothing happens once
// the end of the job is told.
void DisturbChief(SimCluster* cluster, Random* random);

// From now on chiefs that have ended are started again, as `lockstep up` does.
void RestartEndedChiefs(SimCluster* cluster);

// After the end of the job: that a chief does not end, or not well; that steps are missing.
void AppendBadEnds(SimCluster* cluster, std::vector<std::string>* broken);

}  // namespace lockstep::sim
