// Jobs whose shards have copies at the next ps.
#include "absl/strings/str_cat.h"
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
    // Before somebody has begun there may be shards that the chief is still making.
    const bool has_begun = cluster->Starts(GlobalStep()) > 0;
    const bool has_copies = has_begun && cluster->HasAllCopies();
    if (has_copies) {
      SimPs& ps = cluster->ps(random->Below(cluster->options().ps));
      ps.Kill();
      cluster->events().After(random->Between(absl::ZeroDuration(), absl::Seconds(4)),
                              [&ps] { ps.Start(); });
    }
    KillOne(has_copies ? left - 1 : left, random, cluster);
  });
}

// Workers notice nothing. A short job may be over before one that it does not need has begun.
void AppendStarts(SimCluster* cluster, std::vector<std::string>* broken) {
  const bool has_backup = cluster->options().aggregate < cluster->options().workers;
  for (uint32_t i = 0; i < cluster->options().workers; ++i) {
    const size_t starts = cluster->worker(i).starts().size();
    const bool is_right = starts == 1 || (starts == 0 && has_backup);
    if (!is_right) broken->push_back(absl::StrCat("worker ", i, " began ", starts, " times"));
    const absl::Status& end = *cluster->worker(i).end();
    if (!end.ok()) broken->push_back(absl::StrCat("worker ", i, ": ", end.ToString()));
  }
}

// `disturb` plans what happens to the job. `may_start_again`: workers may lose their leases.
std::string SimulateWithCopies(const SimOptions& options, bool may_start_again,
                               absl::FunctionRef<void(SimCluster*)> disturb, SimRun* run) {
  const auto judge = [may_start_again](SimCluster* cluster, std::vector<std::string>* broken) {
    AppendBadEnd(*cluster, broken);
    AppendReturn(Epoch(1), cluster, broken);
    if (!may_start_again) AppendStarts(cluster, broken);
  };
  return CompareDisturbed(Undisturbed(options), options, disturb, judge, run);
}

}  // namespace

std::string SimulateCopies(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0xc0b1);
  SimOptions options = SmallJob(seed, Random(seed ^ 0xc0b2));
  options.ps = static_cast<uint32_t>(random.Between(2, 3));
  options.copies = true;
  VaryUpdates(&random, &options);
  const auto nothing = [](SimCluster*) {};
  return SimulateWithCopies(options, /*may_start_again=*/false, nothing, run);
}

std::string SimulateCopyDeaths(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0xc0b3);
  SimOptions options = CopiedJob(seed, &random);
  options.copies = true;
  VaryUpdates(&random, &options);
  const auto kill = [&](SimCluster* cluster) {
    KillOne(random.Between(1, 4), std::make_shared<Random>(seed ^ 0xdead), cluster);
  };
  return SimulateWithCopies(options, /*may_start_again=*/false, kill, run);
}

std::string SimulateCopyCuts(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0xc0b4);
  SimOptions options = CopiedJob(seed, &random);
  options.copies = true;
  options.network = RoughNetwork(&random);
  VaryUpdates(&random, &options);
  const auto cut = [&](SimCluster* cluster) {
    PlanCuts({}, std::make_shared<Random>(seed ^ 0xc077), cluster);
  };
  return SimulateWithCopies(options, /*may_start_again=*/true, cut, run);
}

}  // namespace lockstep::sim
