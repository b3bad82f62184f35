#include "tests/sim/laws.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"

namespace lockstep::sim {

std::string SimulateFifo(uint64_t seed, SimRun* run) {
  SimCluster cluster(LawfulJob(seed, FIFO), run);
  return RunAndJudge(&cluster);
}

std::string SimulatePerReplica(uint64_t seed, SimRun* run) {
  SimCluster cluster(LawfulJob(seed, PER_REPLICA), run);
  return RunAndJudge(&cluster);
}

}  // namespace lockstep::sim
