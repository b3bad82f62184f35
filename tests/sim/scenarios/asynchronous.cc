#include "absl/strings/str_join.h"
#include "tests/sim/laws.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"

namespace lockstep::sim {
namespace {

// All but worker 0 die at some time, and some come back.
void PlanDeathsOfOthers(uint64_t seed, SimCluster* cluster) {
  Random random(seed ^ 0xdead);
  for (uint32_t victim = 1; victim < cluster->options().workers; ++victim) {
    const absl::Duration when = random.Between(absl::ZeroDuration(), absl::Milliseconds(200));
    cluster->events().After(when, [cluster, victim] { cluster->worker(victim).Kill(); });
    if (random.Chance(0.5)) continue;
    const absl::Duration pause = random.Between(absl::ZeroDuration(), absl::Seconds(12));
    cluster->events().After(when + pause, [cluster, victim] {
      if (!cluster->end().has_value()) cluster->worker(victim).Start();
    });
  }
}

std::string SimulateAsynchronousJob(uint64_t seed, bool deaths, SimRun* run) {
  SimCluster cluster(AsynchronousJob(seed), run);
  cluster.StartAll();
  if (deaths) PlanDeathsOfOthers(seed, &cluster);
  const auto is_over = [&] { return cluster.end() && cluster.worker(0).end(); };
  if (!cluster.RunUntil(is_over, kLimit)) return "no end: " + Describe(cluster);
  std::vector<std::string> broken = BrokenAsynchronousLaws(cluster);
  AppendBadEnd(cluster, &broken);
  if (!cluster.worker(0).end()->ok()) broken.push_back(cluster.worker(0).end()->ToString());
  return absl::StrJoin(broken, "; ");
}

}  // namespace

std::string SimulateAsynchronous(uint64_t seed, SimRun* run) {
  return SimulateAsynchronousJob(seed, /*deaths=*/false, run);
}

std::string SimulateAsynchronousDeaths(uint64_t seed, SimRun* run) {
  return SimulateAsynchronousJob(seed, /*deaths=*/true, run);
}

}  // namespace lockstep::sim
