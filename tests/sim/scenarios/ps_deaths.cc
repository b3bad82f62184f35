#include <memory>

#include "tests/sim/scenarios/deaths.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::sim {
namespace {

void PlanDeaths(const std::shared_ptr<Random>& random, SimCluster* cluster) {
  absl::Duration when = absl::ZeroDuration();
  for (int64_t deaths = random->Between(1, 4); deaths > 0; --deaths) {
    when += random->Between(absl::ZeroDuration(), absl::Milliseconds(80));
    const auto victim = static_cast<uint32_t>(random->Below(cluster->options().ps));
    const absl::Duration pause = random->Between(absl::ZeroDuration(), absl::Seconds(8));
    cluster->events().After(
        when, [cluster, victim, pause, random] { KillPs(victim, pause, random.get(), cluster); });
    // Others die meanwhile, or once it is back.
    if (random->Chance(0.5)) when += pause;
  }
  if (!random->Chance(0.4)) return;
  when = random->Between(absl::ZeroDuration(), absl::Milliseconds(100));
  const absl::Duration pause = random->Between(absl::ZeroDuration(), absl::Seconds(8));
  cluster->events().After(when,
                          [cluster, pause, random] { KillChief(pause, random.get(), cluster); });
}

}  // namespace

std::string SimulatePsDeaths(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0x9505);
  SimOptions calm = SmallJob(seed, Random(seed ^ 0x9511));
  calm.network = NetworkOptions();
  SimOptions options = calm;
  const test::TemporaryFolder folder(test::TemporaryFolder::kInMemory);
  options.checkpoints = folder.path();
  options.save_every = random.Between(1, 3);
  options.network = RoughNetwork(&random);
  const auto deaths = std::make_shared<Random>(seed ^ 0xdead);
  return CompareDisturbed(
      calm, options, [&deaths](SimCluster* cluster) { PlanDeaths(deaths, cluster); }, run);
}

}  // namespace lockstep::sim
