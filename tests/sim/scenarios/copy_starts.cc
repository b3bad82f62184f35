// Jobs whose shards have copies, with chiefs that stand by. The chief dies or is stopped while it
// makes the shards: no step was made.
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"
#include "tests/sim/scenarios/standbys.h"

namespace lockstep::sim {
namespace {

// In which the shards of most jobs are made.
constexpr absl::Duration kLongestMaking = absl::Milliseconds(20);
// Longer than a lease. The job, which another chief begins meanwhile, takes longer.
constexpr absl::Duration kLongestStall = absl::Seconds(8);

// One that nobody has heard of is started again as it was: nobody would take its place.
void StopOrKillChief(Random* random, SimCluster* cluster) {
  SimChiefs& chief = cluster->chief();
  if (random->Chance(0.7)) {
    return chief.Suspend(random->Between(absl::ZeroDuration(), kLongestStall));
  }
  chief.Kill();
  chief.Start();
}

}  // namespace

std::string SimulateCopyStarts(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0xc0ba);
  SimOptions calm = SlowJob(seed, random.Between(20, 30), &random);
  calm.chiefs = 2;
  calm.network = NetworkOptions();
  VaryUpdates(&random, &calm);
  SimOptions options = calm;
  options.copies = true;
  const auto disturb = [seed](SimCluster* cluster) {
    const auto later = std::make_shared<Random>(seed ^ 0xdead);
    for (int64_t left = later->Between(1, 2); left > 0; --left) cluster->chief().StartStandby();
    RestartEndedChiefs(cluster);
    cluster->events().After(later->Between(absl::ZeroDuration(), kLongestMaking),
                            [later, cluster] { StopOrKillChief(later.get(), cluster); });
  };
  return CompareDisturbed(calm, options, disturb, AppendBadEnds, run);
}

}  // namespace lockstep::sim
