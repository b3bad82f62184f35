#include "absl/strings/str_join.h"
#include "tests/sim/laws.h"
#include "tests/sim/scenarios/cuts.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"

namespace lockstep::sim {

std::string SimulateLargeVariables(uint64_t seed, SimRun* run) {
  const auto random = std::make_shared<Random>(seed ^ 0x1a9);
  SimOptions options = LargeJob(seed);
  options.network = RoughNetwork(random.get());
  SimCluster cluster(options, run);
  cluster.StartAll();
  PlanCuts({}, random, &cluster);
  if (!cluster.RunToEnd(kLimit)) return "no end: " + Describe(cluster);
  std::vector<std::string> broken;
  AppendBadEnd(cluster, &broken);
  return absl::StrJoin(broken, "; ");
}

}  // namespace lockstep::sim
