// Jobs whose shards have copies at the next ps.
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/sim/laws.h"
#include "tests/sim/scenarios/cuts.h"
#include "tests/sim/scenarios/deaths.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"

namespace lockstep::sim {
namespace {

// Without copies and faults.
SimOptions Undisturbed(SimOptions options) {
  options.copies = false;
  options.network = NetworkOptions();
  return options;
}

// One ps after the other, while each shard has a copy.
void KillOne(int left, const std::shared_ptr<Random>& random, SimCluster* cluster) {
  const absl::Duration pause = random->Between(absl::ZeroDuration(), absl::Seconds(4));
  cluster->events().After(pause, [left, random, cluster] {
    if (left == 0 || !Trains(cluster)) return;
    const bool has_copies = cluster->HasAllCopies();
    if (has_copies) {
      SimPs& ps = cluster->ps(random->Below(cluster->options().ps));
      ps.Kill();
      cluster->events().After(random->Between(absl::ZeroDuration(), absl::Seconds(4)),
                              [&ps] { ps.Start(); });
    }
    KillOne(has_copies ? left - 1 : left, random, cluster);
  });
}

// What only the loss of a shard explains.
void AppendReturn(SimCluster* cluster, std::vector<std::string>* broken) {
  const Epoch epoch = cluster->shard(0).GetView().epoch;
  if (epoch == Epoch(1)) return;
  broken->push_back(absl::StrCat("the job went back, to epoch ", epoch.value()));
}

// Workers notice nothing.
void AppendStarts(SimCluster* cluster, std::vector<std::string>* broken) {
  for (uint32_t i = 0; i < cluster->options().workers; ++i) {
    const size_t starts = cluster->worker(i).starts().size();
    if (starts != 1) broken->push_back(absl::StrCat("worker ", i, " began ", starts, " times"));
    const absl::Status& end = *cluster->worker(i).end();
    if (!end.ok()) broken->push_back(absl::StrCat("worker ", i, ": ", end.ToString()));
  }
}

// `disturb` plans what happens to the job. `may_start_again`: workers may lose their leases.
template <typename Disturb>
std::string SimulateWithCopies(const SimOptions& options, bool may_start_again, SimRun* run,
                               Disturb disturb) {
  SimOptions plain = Undisturbed(options);
  SimCluster undisturbed(plain, run);
  undisturbed.StartAll();
  if (!undisturbed.RunToEnd(kLimit)) return "the undisturbed run does not end";
  SimCluster cluster(options, run);
  cluster.StartAll();
  disturb(&cluster);
  if (!cluster.RunToEnd(kLimit)) return "no end: " + Describe(cluster);
  std::vector<std::string> broken;
  AppendBadEnd(cluster, &broken);
  AppendReturn(&cluster, &broken);
  if (!may_start_again) AppendStarts(&cluster, &broken);
  for (const std::string& line : Differences(&cluster, &undisturbed)) broken.push_back(line);
  return absl::StrJoin(broken, "; ");
}

}  // namespace

std::string SimulateCopies(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0xc0b1);
  SimOptions options = SmallJob(seed, Random(seed ^ 0xc0b2));
  options.ps = static_cast<uint32_t>(random.Between(2, 3));
  options.copies = true;
  return SimulateWithCopies(options, /*may_start_again=*/false, run, [](SimCluster*) {});
}

std::string SimulateCopyDeaths(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0xc0b3);
  SimOptions options = CopiedJob(seed, &random);
  options.copies = true;
  return SimulateWithCopies(options, /*may_start_again=*/false, run, [&](SimCluster* cluster) {
    KillOne(random.Between(1, 4), std::make_shared<Random>(seed ^ 0xdead), cluster);
  });
}

std::string SimulateCopyCuts(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0xc0b4);
  SimOptions options = CopiedJob(seed, &random);
  options.copies = true;
  options.network = RoughNetwork(&random);
  return SimulateWithCopies(options, /*may_start_again=*/true, run, [&](SimCluster* cluster) {
    PlanCuts({}, std::make_shared<Random>(seed ^ 0xc077), cluster);
  });
}

}  // namespace lockstep::sim
