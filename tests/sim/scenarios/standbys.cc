#include "absl/strings/str_join.h"
#include "tests/sim/laws.h"
#include "tests/sim/scenarios/cuts.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"

namespace lockstep::sim {
namespace {

// Once the end is being told, another chief has nothing to take over.
bool IsTellingTheEnd(SimCluster* cluster) {
  return cluster->end().has_value() || cluster->status().state() == "done";
}

// One that has never commanded is started again as it was: nobody would take its place.
void Disturb(SimCluster* cluster, Random* random) {
  if (IsTellingTheEnd(cluster)) return;
  SimChiefs& chief = cluster->chief();
  const int kind = random->Between(0, 2);
  if (kind == 0 || !chief.has_commanded()) {
    chief.Kill();
    chief.has_commanded() ? chief.StartStandby() : chief.Start();
  } else if (kind == 1) {
    chief.Terminate();
    chief.StartStandby();
  } else {
    chief.Suspend(random->Between(absl::ZeroDuration(), absl::Seconds(20)));
    chief.StartStandby();
  }
}

void PlanDisturbances(const std::shared_ptr<Random>& random, SimCluster* cluster) {
  absl::Duration when = absl::ZeroDuration();
  for (int64_t times = random->Between(1, 4); times > 0; --times) {
    when += random->Between(absl::ZeroDuration(), absl::Milliseconds(120));
    cluster->events().After(when, [cluster, random] { Disturb(cluster, random.get()); });
    if (random->Chance(0.5)) when += random->Between(absl::ZeroDuration(), absl::Seconds(8));
  }
}

std::string SimulateWithStandbys(uint64_t seed, bool is_cut, SimRun* run) {
  SimOptions options = SmallJob(seed, Random(seed ^ 0x57a4d));
  options.chiefs = 2;
  SimCluster undisturbed(options, run);
  undisturbed.StartAll();
  if (!undisturbed.RunToEnd(kLimit)) return "the undisturbed run does not end";
  const auto random = std::make_shared<Random>(seed ^ 0xdead);
  SimCluster cluster(options, run);
  cluster.StartAll();
  for (int64_t standbys = random->Between(1, 3); standbys > 0; --standbys) {
    cluster.chief().StartStandby();
  }
  PlanDisturbances(random, &cluster);
  if (is_cut) PlanCuts({}, random, &cluster);
  if (!cluster.RunToEnd(kLimit)) return "no end: " + Describe(cluster);
  // Standbys, and chiefs that are still stopped.
  cluster.RunUntil([] { return false; }, absl::Seconds(30));
  std::vector<std::string> broken;
  if (const std::string bad = BadEnds(&cluster); !bad.empty()) {
    broken.push_back(bad);
  }
  if (cluster.global_step() != GlobalStep(options.steps)) {
    broken.push_back("not all steps were made");
  }
  for (const std::string& line : Differences(&cluster, &undisturbed)) broken.push_back(line);
  return absl::StrJoin(broken, "; ");
}

}  // namespace

std::string SimulateStandbys(uint64_t seed, SimRun* run) {
  return SimulateWithStandbys(seed, /*is_cut=*/false, run);
}

std::string SimulateStandbysCut(uint64_t seed, SimRun* run) {
  return SimulateWithStandbys(seed, /*is_cut=*/true, run);
}

}  // namespace lockstep::sim
