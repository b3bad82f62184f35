#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "common/base/exit_code.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"

namespace lockstep::sim {
namespace {

// A lease, the ticks and messages until everybody knows that it has ended, and until everybody has
// heard of the end, or nobody is waited for any longer.
constexpr absl::Duration kLeaseAndEnd = absl::Seconds(12);

struct DeathCounts {
  uint32_t forever = 0;
  uint32_t with_successor = 0;
};

// Workers die at random moments, the last ones first; some have a successor, soon or late.
void PlanDeathsOfLast(const DeathCounts& deaths, Random* random, SimCluster* cluster) {
  for (uint32_t i = 0; i < deaths.forever + deaths.with_successor; ++i) {
    const uint32_t victim = cluster->options().workers - 1 - i;
    const absl::Duration when = random->Between(absl::ZeroDuration(), absl::Milliseconds(80));
    const absl::Duration pause = random->Between(absl::ZeroDuration(), absl::Seconds(12));
    cluster->events().After(when, [cluster, victim] { cluster->worker(victim).Kill(); });
    if (i < deaths.forever) continue;
    cluster->events().After(when + pause, [cluster, victim] {
      if (!cluster->end().has_value()) cluster->worker(victim).Start();
    });
  }
}

SimOptions QuorumJob(QuorumPolicy policy, uint64_t seed, Random* random) {
  SimOptions options;
  options.seed = seed;
  options.quorum_policy = policy;
  options.ps = static_cast<uint32_t>(random->Between(1, 3));
  options.workers = static_cast<uint32_t>(random->Between(2, 5));
  options.aggregate = static_cast<uint32_t>(random->Between(1, static_cast<int>(options.workers)));
  options.steps = random->Between(2, 10);
  options.least_compute = absl::Milliseconds(5);
  options.most_compute = absl::Milliseconds(15);
  if (random->Chance(0.3)) options.network.loss = 0.03;
  return options;
}

std::string RunToGoodEnd(SimCluster* cluster) {
  if (!cluster->RunUntil([&] { return cluster->end().has_value(); }, kLimit)) {
    return "no end: " + Describe(*cluster);
  }
  std::vector<std::string> broken;
  AppendBadEnd(*cluster, &broken);
  return absl::StrJoin(broken, "; ");
}

// All workers register before anybody dies.
bool Begin(SimCluster* cluster) {
  cluster->StartAll();
  return cluster->RunUntil([&] { return cluster->status().state() == "training"; }, kLimit);
}

// Some workers, but not all.
uint32_t SomeOf(uint32_t workers, Random* random) {
  return static_cast<uint32_t>(random->Between(1, static_cast<int>(workers) - 1));
}

}  // namespace

std::string SimulateWait(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0x3a17);
  SimCluster cluster(QuorumJob(WAIT, seed, &random), run);
  if (!Begin(&cluster)) return "no beginning";
  const int backups = static_cast<int>(cluster.options().workers - cluster.options().aggregate);
  const auto forever = static_cast<uint32_t>(random.Between(0, backups));
  PlanDeathsOfLast({.forever = forever,
                    .with_successor = static_cast<uint32_t>(
                        random.Between(0, static_cast<int>(cluster.options().workers - forever)))},
                   &random, &cluster);
  return RunToGoodEnd(&cluster);
}

std::string SimulateShrink(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0x5431);
  SimCluster cluster(QuorumJob(SHRINK, seed, &random), run);
  if (!Begin(&cluster)) return "no beginning";
  const uint32_t forever = SomeOf(cluster.options().workers, &random);
  PlanDeathsOfLast({.forever = forever,
                    .with_successor = static_cast<uint32_t>(random.Between(
                        0, static_cast<int>(cluster.options().workers - forever) - 1))},
                   &random, &cluster);
  return RunToGoodEnd(&cluster);
}

std::string SimulateShrinkViews(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0x51e);
  SimOptions options = QuorumJob(SHRINK, seed, &random);
  options.aggregate = options.workers;
  options.steps = 100000;
  options.network.most_delay = absl::Milliseconds(random.Between(2, 300));
  SimCluster cluster(options, run);
  if (!Begin(&cluster)) return "no beginning";
  const uint32_t forever = SomeOf(options.workers, &random);
  PlanDeathsOfLast({.forever = forever}, &random, &cluster);
  std::string broken;
  const bool has_shrunk = cluster.RunUntil(
      [&] {
        const uint32_t required = cluster.status().job().required_now();
        for (uint32_t ps = 0; ps < options.ps && broken.empty(); ++ps) {
          const size_t members = cluster.shard(ps).GetView().members.size();
          if (required >= members) continue;
          broken = absl::StrCat("a step needs ", required, ", ps ", ps, " admits ", members);
        }
        return !broken.empty() || required == options.workers - forever;
      },
      kLimit);
  return has_shrunk ? broken : "it does not shrink: " + Describe(cluster);
}

std::string SimulateAbort(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0xab0);
  SimOptions options = QuorumJob(ABORT, seed, &random);
  options.steps = 100000;
  // Jobs that go on do so for a whole lease and more: their steps must not be many.
  options.least_compute = absl::Milliseconds(25);
  options.most_compute = absl::Milliseconds(75);
  SimCluster cluster(options, run);
  if (!Begin(&cluster)) return "no beginning";
  const auto forever = static_cast<uint32_t>(random.Between(1, static_cast<int>(options.workers)));
  PlanDeathsOfLast({.forever = forever}, &random, &cluster);
  const bool ended = cluster.RunUntil([&] { return cluster.end().has_value(); }, kLeaseAndEnd);
  if (ended != (options.workers - forever < options.aggregate)) {
    return absl::StrCat(ended ? "it ended" : "it did not end", " with ", options.workers - forever,
                        " of ", options.aggregate);
  }
  if (!ended) return "";
  const std::string last = absl::StrCat("worker ", options.workers - 1, " (");
  const std::string text(cluster.end()->message());
  if (ExitCodeFor(*cluster.end()) != ExitCode::kPeersLost) return "wrong exit code: " + text;
  return text.find(last) == std::string::npos ? "nobody is named: " + text : "";
}

}  // namespace lockstep::sim
