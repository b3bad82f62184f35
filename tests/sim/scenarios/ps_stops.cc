// Ps that are stopped (SIGSTOP), some beyond every lease, and go on.
#include <memory>

#include "tests/sim/scenarios/cuts.h"
#include "tests/sim/scenarios/deaths.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::sim {
namespace {

constexpr absl::Duration kLongestDeath = absl::Seconds(8);

void KillChiefUnlessDead(Random* random, SimCluster* cluster) {
  if (!cluster->chief().is_alive()) return;
  KillChief(random->Between(absl::ZeroDuration(), kLongestDeath), random, cluster);
}

// A ps is stopped. Meanwhile the next one, which keeps its copy, may be stopped or die, and so may
// the chief, or the one that is stopped.
void StopOne(const std::shared_ptr<Random>& random, SimCluster* cluster) {
  const uint32_t num_ps = cluster->options().ps;
  const auto victim = static_cast<uint32_t>(random->Below(num_ps));
  const uint32_t next = (victim + 1) % num_ps;
  cluster->ps(victim).Suspend(random->Between(absl::ZeroDuration(), kLongestStop));
  const absl::Duration later = random->Chance(0.5)
                                   ? absl::ZeroDuration()
                                   : random->Between(absl::ZeroDuration(), kLongestDeath);
  cluster->events().After(later, [victim, next, random, cluster] {
    const absl::Duration pause = random->Between(absl::ZeroDuration(), kLongestDeath);
    switch (random->Below(6)) {
      case 0:
        return KillChiefUnlessDead(random.get(), cluster);
      case 1:
        return KillPs(next, pause, random.get(), cluster);
      case 2:
        return KillPs(victim, pause, random.get(), cluster);
      case 3:
        return cluster->ps(next).Suspend(random->Between(absl::ZeroDuration(), kLongestStop));
      default:
        return;
    }
  });
}

void PlanStops(const std::shared_ptr<Random>& random, SimCluster* cluster) {
  absl::Duration when = absl::ZeroDuration();
  for (int64_t stops = random->Between(1, 4); stops > 0; --stops) {
    when += random->Between(absl::ZeroDuration(), absl::Seconds(3));
    cluster->events().After(when, [random, cluster] { StopOne(random, cluster); });
    if (random->Chance(0.5)) when += random->Between(absl::ZeroDuration(), kLongestStop);
  }
}

void RestartChief(Random* random, SimCluster* cluster) {
  if (!Trains(cluster) || !cluster->chief().is_alive()) return;
  cluster->chief().Kill();
  cluster->events().After(random->Between(absl::ZeroDuration(), kLongestDeath),
                          [cluster] { cluster->StartChief(); });
}

void PlanLonelyStops(const std::shared_ptr<Random>& random, SimCluster* cluster) {
  absl::Duration when = absl::ZeroDuration();
  for (int64_t stops = random->Between(1, 5); stops > 0; --stops) {
    when += random->Between(absl::ZeroDuration(), absl::Seconds(3));
    cluster->events().After(when, [random, cluster] {
      cluster->ps(random->Below(cluster->options().ps))
          .Suspend(random->Between(absl::ZeroDuration(), kLongestStop));
      if (random->Chance(0.3)) RestartChief(random.get(), cluster);
    });
  }
  if (random->Chance(0.5)) PlanCuts({}, random, cluster);
}

}  // namespace

std::string SimulatePsStops(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0x9570);
  SimOptions calm = SlowJob(seed, random.Between(5, 20), &random);
  calm.ps = static_cast<uint32_t>(random.Between(1, 3));
  calm.network = NetworkOptions();
  VaryUpdates(&random, &calm);
  SimOptions options = calm;
  options.network = RoughNetwork(&random);
  const auto disturb = [seed](SimCluster* cluster) {
    PlanLonelyStops(std::make_shared<Random>(seed ^ 0xdead), cluster);
  };
  const auto judge = [](SimCluster* cluster, std::vector<std::string>* broken) {
    AppendBadEnd(*cluster, broken);
    AppendReturn(Epoch(1), cluster, broken);
  };
  return CompareDisturbed(calm, options, disturb, judge, run);
}

std::string SimulateCopyStops(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0xc0b9);
  SimOptions calm = SlowJob(seed, random.Between(5, 20), &random);
  calm.network = NetworkOptions();
  VaryUpdates(&random, &calm);
  SimOptions options = calm;
  const test::TemporaryFolder folder(test::TemporaryFolder::kInMemory);
  ProtectShards(folder.path(), &random, &options);
  const auto disturb = [seed](SimCluster* cluster) {
    PlanStops(std::make_shared<Random>(seed ^ 0xdead), cluster);
  };
  return CompareDisturbed(calm, options, disturb, run);
}

}  // namespace lockstep::sim
