#include "absl/strings/str_join.h"
#include "tests/sim/laws.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"

namespace lockstep::sim {
namespace {

constexpr absl::Duration kLongestCut = absl::Seconds(20);
// The leases of workers and chiefs outlast it.
constexpr absl::Duration kShortCut = absl::Seconds(2);

NetworkOptions RoughNetwork(Random* random) {
  NetworkOptions network;
  network.duplicates = 0.1;
  if (random->Chance(0.5)) network.loss = 0.03;
  if (random->Chance(0.5)) network.late = 0.5;
  if (random->Chance(0.5)) network.stalls = 0.003;
  if (random->Chance(0.3)) network.most_delay = absl::Milliseconds(30);
  return network;
}

// Two processes that call one another.
Link RandomPair(SimCluster* cluster, Random* random) {
  const Node ps{Role::kPs, static_cast<uint32_t>(random->Below(cluster->options().ps))};
  const Node worker{Role::kWorker,
                    static_cast<uint32_t>(random->Below(cluster->options().workers))};
  const Node chief = cluster->chief().commander();
  switch (random->Below(3)) {
    case 0:
      return {chief, ps};
    case 1:
      return {worker, ps};
    default:
      return {worker, chief};
  }
}

// A few, one after the other or at the same time.
struct Cuts {
  absl::Duration longest;
  bool overlap = true;
};
void PlanCuts(const Cuts& cuts, const std::shared_ptr<Random>& random, SimCluster* cluster) {
  absl::Duration when = absl::ZeroDuration();
  for (int64_t left = random->Between(1, 5); left > 0; --left) {
    when += random->Between(absl::ZeroDuration(), absl::Milliseconds(60));
    const absl::Duration length = random->Between(absl::ZeroDuration(), cuts.longest);
    cluster->events().After(when, [cluster, random, length] {
      const Link pair = RandomPair(cluster, random.get());
      cluster->network().Cut(random->Chance(0.5) ? pair : pair.Reversed(), length);
    });
    // What was held comes before the next one.
    if (!cuts.overlap || random->Chance(0.5)) when += length + absl::Milliseconds(100);
  }
}

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
  PlanCuts({.longest = kLongestCut}, random, &cluster);
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
  PlanCuts({.longest = kLongestCut}, random, &cluster);
  if (!cluster.RunToEnd(kLimit)) return "no end: " + Describe(cluster);
  std::vector<std::string> broken = BrokenAsynchronousLaws(cluster);
  AppendBadEnd(cluster, &broken);
  return absl::StrJoin(broken, "; ");
}

}  // namespace lockstep::sim
