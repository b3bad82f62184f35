#include "tests/sim/laws.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"

namespace lockstep::sim {

std::string SimulateFifo(uint64_t seed, Trace* trace) {
  SimCluster cluster(LawfulJob(seed, FIFO), trace);
  return RunAndJudge(&cluster);
}

std::string SimulatePerReplica(uint64_t seed, Trace* trace) {
  SimCluster cluster(LawfulJob(seed, PER_REPLICA), trace);
  return RunAndJudge(&cluster);
}

}  // namespace lockstep::sim
