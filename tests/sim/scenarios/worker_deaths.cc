#include "absl/strings/str_join.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"

namespace lockstep::sim {

std::string SimulateWorkerDeaths(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0xdead);
  SimOptions options;
  options.seed = seed;
  options.ps = static_cast<uint32_t>(random.Between(1, 3));
  options.workers = static_cast<uint32_t>(random.Between(1, 4));
  options.aggregate = static_cast<uint32_t>(random.Between(1, static_cast<int>(options.workers)));
  options.steps = random.Between(2, 8);
  if (random.Chance(0.3)) options.network.loss = 0.03;
  SimCluster cluster(options, run);
  cluster.StartAll();
  for (int deaths = random.Between(1, 4); deaths > 0; --deaths) {
    const auto victim = static_cast<uint32_t>(random.Below(options.workers));
    const absl::Duration when = random.Between(absl::ZeroDuration(), absl::Milliseconds(100));
    const absl::Duration pause = random.Between(absl::ZeroDuration(), absl::Seconds(12));
    cluster.events().After(when, [&cluster, victim] { cluster.worker(victim).Kill(); });
    cluster.events().After(when + pause, [&cluster, victim] {
      if (!cluster.worker(victim).end().has_value()) cluster.worker(victim).Start();
    });
  }
  if (!cluster.RunToEnd(kLimit)) return "somebody waits for ever: " + Describe(cluster);
  std::vector<std::string> broken;
  AppendBadEnd(cluster, &broken);
  return absl::StrJoin(broken, "; ");
}

}  // namespace lockstep::sim
