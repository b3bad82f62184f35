#include "absl/strings/match.h"
#include "absl/strings/str_join.h"
#include "tests/sim/laws.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"

namespace lockstep::sim {
namespace {

SimOptions RestartedJob(uint64_t seed) { return SmallJob(seed, Random(seed ^ 0xc4ef)); }

// Once it tells the end, another chief has nothing to take over.
bool TellsTheEnd(SimCluster* cluster) { return cluster->status().state() == "done"; }

void PlanRestarts(uint64_t seed, SimCluster* cluster) {
  Random random(seed ^ 0xdead);
  absl::Duration when = absl::ZeroDuration();
  for (int deaths = random.Between(1, 4); deaths > 0; --deaths) {
    when += random.Between(absl::ZeroDuration(), absl::Milliseconds(120));
    const absl::Duration pause = random.Between(absl::ZeroDuration(), absl::Seconds(8));
    cluster->events().After(when, [cluster, pause] {
      if (TellsTheEnd(cluster)) return;
      cluster->chief().Kill();
      cluster->events().After(pause, [cluster] { cluster->StartChief(); });
    });
    when += pause;
  }
}

// A chief that is told to end has withdrawn the grants and perhaps closed a step when it does.
void StartNextOnceEnded(SimCluster* cluster, absl::Duration pause) {
  if (!cluster->end().has_value()) {
    cluster->events().After(absl::Milliseconds(50),
                            [cluster, pause] { StartNextOnceEnded(cluster, pause); });
    return;
  }
  if (!absl::IsCancelled(*cluster->end())) return;
  cluster->chief().Kill();
  cluster->events().After(pause, [cluster] { cluster->StartChief(); });
}

void PlanTerminations(uint64_t seed, SimCluster* cluster) {
  Random random(seed ^ 0x7e97);
  absl::Duration when = absl::ZeroDuration();
  for (int times = random.Between(1, 3); times > 0; --times) {
    when += random.Between(absl::ZeroDuration(), absl::Milliseconds(120));
    const absl::Duration pause = random.Between(absl::ZeroDuration(), absl::Seconds(4));
    cluster->events().After(when, [cluster, pause] {
      if (cluster->end().has_value() || TellsTheEnd(cluster)) return;
      cluster->chief().Terminate();
      StartNextOnceEnded(cluster, pause);
    });
    when += pause + absl::Seconds(3);
  }
}

std::string Terminate(uint64_t seed, bool asynchronous, SimRun* run) {
  SimOptions options = RestartedJob(seed);
  options.asynchronous = asynchronous;
  options.same_every_time = !asynchronous;
  options.checkpoints = "/dev/null/checkpoints";
  SimCluster cluster(options, run);
  cluster.StartAll();
  PlanTerminations(seed, &cluster);
  // As long as there are members to read the values as.
  const auto is_trained = [&] { return cluster.global_step() == GlobalStep(options.steps); };
  if (!cluster.RunUntil(is_trained, kLimit)) return "not trained: " + Describe(cluster);
  std::vector<std::string> broken;
  if (asynchronous) broken = BrokenAsynchronousLaws(cluster);
  if (!asynchronous) {
    SimOptions undisturbed_options = options;
    undisturbed_options.checkpoints = "";
    SimCluster undisturbed(undisturbed_options, run);
    undisturbed.StartAll();
    if (!undisturbed.RunToEnd(kLimit)) return "the undisturbed run does not end";
    for (const std::string& line : Differences(&cluster, &undisturbed)) broken.push_back(line);
  }
  const auto is_given_up = [&] {
    return cluster.end().has_value() && absl::IsUnavailable(*cluster.end());
  };
  if (!cluster.RunUntil(is_given_up, kLimit)) return "no end: " + Describe(cluster);
  if (!absl::StrContains(cluster.end()->message(), "The ps keep the model")) {
    broken.push_back(cluster.end()->ToString());
  }
  return absl::StrJoin(broken, "; ");
}

// Here the result depends on who comes first, so the laws are all that there is to check.
std::string RestartByLaws(uint64_t seed, bool asynchronous, SimRun* run) {
  SimOptions options = RestartedJob(seed);
  options.same_every_time = false;
  options.asynchronous = asynchronous;
  if (!asynchronous) options.token_policy = FIFO;
  SimCluster cluster(options, run);
  cluster.StartAll();
  PlanRestarts(seed, &cluster);
  if (!cluster.RunToEnd(kLimit)) return "no end: " + Describe(cluster);
  std::vector<std::string> broken;
  if (asynchronous) broken = BrokenAsynchronousLaws(cluster);
  AppendBadEnd(cluster, &broken);
  return absl::StrJoin(broken, "; ");
}

}  // namespace

std::string SimulateChiefDeaths(uint64_t seed, SimRun* run) {
  const SimOptions options = RestartedJob(seed);
  return CompareDisturbed(
      options, options, [seed](SimCluster* cluster) { PlanRestarts(seed, cluster); }, run);
}

std::string SimulateChiefDeathsFifo(uint64_t seed, SimRun* run) {
  return RestartByLaws(seed, /*asynchronous=*/false, run);
}

std::string SimulateChiefDeathsAsynchronous(uint64_t seed, SimRun* run) {
  return RestartByLaws(seed, /*asynchronous=*/true, run);
}

std::string SimulateChiefTerminations(uint64_t seed, SimRun* run) {
  return Terminate(seed, /*asynchronous=*/false, run);
}

std::string SimulateChiefTerminationsAsynchronous(uint64_t seed, SimRun* run) {
  return Terminate(seed, /*asynchronous=*/true, run);
}

}  // namespace lockstep::sim
