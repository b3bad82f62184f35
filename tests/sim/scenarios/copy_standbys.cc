// Jobs whose shards have copies, with chiefs that stand by. Every role dies and is stopped, one
// process after the other: the copies save everything.
#include <memory>
#include <optional>

#include "tests/sim/scenarios/deaths.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"
#include "tests/sim/scenarios/standbys.h"

namespace lockstep::sim {
namespace {

constexpr absl::Duration kLongestAbsence = absl::Seconds(4);
constexpr absl::Duration kLongestWorkerPause = absl::Seconds(12);
constexpr absl::Duration kPoll = absl::Milliseconds(250);
// By then the chief has heard of one that goes on, or another one has taken command.
constexpr int kCalmPolls = 12;

// Before somebody has begun there may be shards that the chief is still making.
bool IsWhole(SimCluster* cluster) {
  return cluster->Starts(GlobalStep()) > 0 && cluster->chief().commands() &&
         cluster->HasAllCopies();
}

void KillPsForAWhile(SimPs* ps, Random* random, SimCluster* cluster) {
  ps->Kill();
  cluster->events().After(random->Between(absl::ZeroDuration(), kLongestAbsence),
                          [ps] { ps->Start(); });
}

void KillWorkerForAWhile(Random* random, SimCluster* cluster) {
  SimWorker* const worker =
      &cluster->worker(static_cast<uint32_t>(random->Below(cluster->options().workers)));
  worker->Kill();
  cluster->events().After(random->Between(absl::ZeroDuration(), kLongestWorkerPause),
                          [worker] { worker->Start(); });
}

// Returns for how many polls all must be well before the next one.
int DisturbOne(Random* random, SimCluster* cluster) {
  SimPs& ps = cluster->ps(random->Below(cluster->options().ps));
  switch (random->Below(6)) {
    case 0:
    case 1:
      KillPsForAWhile(&ps, random, cluster);
      return 1;
    case 2:
      ps.Suspend(random->Between(absl::ZeroDuration(), kLongestStop));
      return kCalmPolls;
    case 3:
      KillWorkerForAWhile(random, cluster);
      return 1;
    default:
      DisturbChief(cluster, random);
      return kCalmPolls;
  }
}

struct Disturbances {
  explicit Disturbances(uint64_t seed) : random(seed) {}

  Random random;
  std::optional<Epoch> epoch;  // that the job must keep; nullopt: it may begin another one
};

Epoch EpochOf(SimCluster* cluster) { return cluster->shard(0).GetView().epoch; }

// `calm`: so many polls are left for which each shard must have its copy first.
void DisturbInTurn(int left, int calm, const std::shared_ptr<Disturbances>& plan,
                   SimCluster* cluster) {
  const absl::Duration pause =
      calm > 1 ? kPoll : plan->random.Between(absl::ZeroDuration(), kLongestAbsence);
  cluster->events().After(pause, [left, calm, plan, cluster] {
    if (left == 0 || !Trains(cluster)) return;
    if (!IsWhole(cluster)) return DisturbInTurn(left, calm > 1 ? kCalmPolls : 1, plan, cluster);
    if (!plan->epoch.has_value()) plan->epoch = EpochOf(cluster);
    if (calm > 1) return DisturbInTurn(left, calm - 1, plan, cluster);
    DisturbInTurn(left - 1, DisturbOne(&plan->random, cluster), plan, cluster);
  });
}

}  // namespace

// A message that takes longer than a lease may be the loss of a chief or of a copy: the next
// process is lost when each shard has its copy again, and all of them obey the chief. A chief that
// is lost while it makes the shards costs an epoch and no step.
std::string SimulateCopyStandbys(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0xc0b8);
  SimOptions calm = SlowJob(seed, random.Between(15, 45), &random);
  calm.chiefs = 2;
  calm.network = NetworkOptions();
  VaryUpdates(&random, &calm);
  SimOptions options = calm;
  options.copies = true;
  options.network = RoughNetwork(&random);
  const auto plan = std::make_shared<Disturbances>(seed ^ 0xdead);
  if (options.network.stalls == 0) plan->epoch = Epoch(1);
  const auto disturb = [&plan](SimCluster* cluster) {
    for (int64_t left = plan->random.Between(1, 2); left > 0; --left) {
      cluster->chief().StartStandby();
    }
    RestartEndedChiefs(cluster);
    DisturbInTurn(static_cast<int>(plan->random.Between(2, 8)), 1, plan, cluster);
  };
  const auto judge = [&plan](SimCluster* cluster, std::vector<std::string>* broken) {
    AppendBadEnds(cluster, broken);
    if (plan->epoch.has_value()) AppendReturn(*plan->epoch, cluster, broken);
  };
  return CompareDisturbed(calm, options, disturb, judge, run);
}

}  // namespace lockstep::sim
