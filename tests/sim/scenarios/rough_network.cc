#include "absl/strings/str_join.h"
#include "tests/sim/laws.h"
#include "tests/sim/scenarios/cuts.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"

namespace lockstep::sim {
namespace {

// The leases of workers and chiefs outlast it.
constexpr absl::Duration kShortCut = absl::Seconds(2);

}  // namespace

std::string SimulateRoughNetwork(uint64_t seed, SimRun* run) {
  const auto random = std::make_shared<Random>(seed ^ 0x40a6);
  SimOptions options = SmallJob(seed, Random(seed ^ 0x5a11));
  options.network = NetworkOptions();
  SimCluster undisturbed(options, run);
  undisturbed.StartAll();
  if (!undisturbed.RunToEnd(kLimit)) return "the undisturbed run does not end";
  options.network = RoughNetwork(random.get());
  SimCluster cluster(options, run);
  cluster.StartAll();
  PlanCuts({}, random, &cluster);
  PlanClockChanges(random, &cluster);
  if (!cluster.RunToEnd(kLimit)) return "no end: " + Describe(cluster);
  std::vector<std::string> broken;
  AppendBadEnd(cluster, &broken);
  for (const std::string& line : Differences(&cluster, &undisturbed)) broken.push_back(line);
  return absl::StrJoin(broken, "; ");
}

// A worker that loses its lease loses its token, as in TensorFlow: nothing here takes so long.
std::string SimulateRoughNetworkFifo(uint64_t seed, SimRun* run) {
  const auto random = std::make_shared<Random>(seed ^ 0x40f1);
  SimOptions options = LawfulJob(seed, FIFO);
  options.network = RoughNetwork(random.get());
  options.network.stalls = 0;
  SimCluster cluster(options, run);
  PlanCuts({.longest = kShortCut, .overlap = false}, random, &cluster);
  return RunAndJudge(&cluster);
}

std::string SimulateRoughNetworkAsynchronous(uint64_t seed, SimRun* run) {
  const auto random = std::make_shared<Random>(seed ^ 0x40a5);
  SimOptions options = AsynchronousJob(seed);
  options.network = RoughNetwork(random.get());
  SimCluster cluster(options, run);
  cluster.StartAll();
  PlanCuts({}, random, &cluster);
  PlanClockChanges(random, &cluster);
  if (!cluster.RunToEnd(kLimit)) return "no end: " + Describe(cluster);
  std::vector<std::string> broken = BrokenAsynchronousLaws(cluster);
  AppendBadEnd(cluster, &broken);
  return absl::StrJoin(broken, "; ");
}

}  // namespace lockstep::sim
