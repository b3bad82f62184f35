// Jobs with copies of their shards. Two processes die at the same time, and come back.
#include <memory>

#include "tests/sim/scenarios/deaths.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"
#include "tests/support/temporary_folder.h"

namespace lockstep::sim {
namespace {

constexpr absl::Duration kLongestPause = absl::Seconds(8);

void KillChiefIfAlive(absl::Duration pause, Random* random, SimCluster* cluster) {
  if (cluster->chief().is_alive()) KillChief(pause, random, cluster);
}

// A ps dies with the chief or with the next ps in the ring, which keeps its copy.
void KillTwo(const std::shared_ptr<Random>& random, SimCluster* cluster) {
  const uint32_t num_ps = cluster->options().ps;
  const auto victim = static_cast<uint32_t>(random->Below(num_ps));
  KillPs(victim, random->Between(absl::ZeroDuration(), kLongestPause), random.get(), cluster);
  const absl::Duration pause = random->Between(absl::ZeroDuration(), kLongestPause);
  if (random->Chance(0.5)) {
    KillChiefIfAlive(pause, random.get(), cluster);
  } else {
    KillPs((victim + 1) % num_ps, pause, random.get(), cluster);
  }
}

// Some while the pairs of the one before are being made again.
void PlanDisasters(const std::shared_ptr<Random>& random, SimCluster* cluster) {
  absl::Duration when = absl::ZeroDuration();
  for (int64_t disasters = random->Between(1, 3); disasters > 0; --disasters) {
    when += random->Between(absl::ZeroDuration(),
                            random->Chance(0.5) ? absl::Milliseconds(300) : absl::Seconds(5));
    cluster->events().After(when, [cluster, random] { KillTwo(random, cluster); });
    if (random->Chance(0.5)) when += kLongestPause;
  }
}

}  // namespace

std::string SimulateCopyDisasters(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0xc0b5);
  SimOptions calm = CopiedJob(seed, &random);
  calm.network = NetworkOptions();
  VaryUpdates(&random, &calm);
  SimOptions options = calm;
  const test::TemporaryFolder folder(test::TemporaryFolder::kInMemory);
  ProtectShards(folder.path(), &random, &options);
  const auto disasters = std::make_shared<Random>(seed ^ 0xdead);
  return CompareDisturbed(
      calm, options, [&disasters](SimCluster* cluster) { PlanDisasters(disasters, cluster); }, run);
}

}  // namespace lockstep::sim
