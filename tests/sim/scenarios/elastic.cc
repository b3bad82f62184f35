#include <algorithm>
#include <map>
#include <set>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "tests/sim/replica_history.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"

namespace lockstep::sim {
namespace {

using Workers = std::set<WorkerIndex>;

constexpr absl::Duration kShortAbsence = absl::Seconds(12);
constexpr absl::Duration kLongAbsence = absl::Seconds(60);

SimOptions ElasticJob(uint64_t seed, Random* random) {
  SimOptions options;
  options.seed = seed;
  options.quorum_policy = random->Chance(0.5) ? SHRINK : WAIT;
  options.ps = static_cast<uint32_t>(random->Between(1, 3));
  options.workers = static_cast<uint32_t>(random->Between(2, 6));
  options.min_replicas = random->Between(1, 2);
  options.steps = random->Between(20, 60);
  options.least_compute = absl::Milliseconds(5);
  options.most_compute = absl::Milliseconds(15);
  if (random->Chance(0.2)) {
    // Long enough for a call whose answer is lost to come again after a change or two.
    options.least_compute = absl::Milliseconds(200);
    options.most_compute = absl::Milliseconds(800);
  }
  if (random->Chance(0.5)) options.network = RoughNetwork(random);
  return options;
}

// About how long the job trains, if nobody has to be waited for.
absl::Duration TrainingOf(const SimOptions& options) {
  return options.most_compute * static_cast<double>(options.steps);
}

void StartLater(uint32_t worker, absl::Duration when, SimCluster* cluster) {
  cluster->events().After(when, [cluster, worker] {
    if (cluster->end().has_value() || !cluster->worker(worker).is_dead()) return;
    cluster->worker(worker).Start();
  });
}

// The job begins with some workers. Others come while it trains, and some depart or die. All come
// back in the end: a step whose replicas have all died waits for one of them, and views of fewer
// than min_replicas are never made. Fills in `killed`.
void PlanComingAndGoing(Random* random, SimCluster* cluster, Workers* killed) {
  const SimOptions& options = cluster->options();
  const absl::Duration training = TrainingOf(options);
  const int begin =
      random->Between(static_cast<int>(options.min_replicas), static_cast<int>(options.workers));
  for (uint32_t i = 0; i < options.workers; ++i) {
    const bool is_first = i < static_cast<uint32_t>(begin);
    StartLater(i, is_first ? absl::ZeroDuration() : random->Between(absl::ZeroDuration(), training),
               cluster);
  }
  for (int changes = random->Between(1, 4); changes > 0; --changes) {
    const auto worker = static_cast<uint32_t>(random->Below(options.workers));
    const absl::Duration when = random->Between(absl::ZeroDuration(), training);
    const absl::Duration pause =
        random->Between(absl::ZeroDuration(), random->Chance(0.5) ? kShortAbsence : kLongAbsence);
    if (random->Chance(0.3)) {
      cluster->events().After(when, [cluster, worker] { cluster->worker(worker).Depart(); });
    } else {
      cluster->events().After(when, [cluster, worker, killed] {
        killed->insert(WorkerIndex(worker));
        cluster->worker(worker).Kill();
      });
    }
    StartLater(worker, when + pause, cluster);
    // Also one that departs, or is killed again, after that.
    StartLater(worker, training + kLongAbsence, cluster);
  }
}

// Whose gradients of a variable a step has.
using Counted = std::map<std::pair<uint32_t, GlobalStep>, Workers>;

// Each step has as many gradients as its view has replicas, less those that were lost: `gone`, and
// those that the chief gave up. One that is lost may have pushed before.
void AppendWrongSteps(SimCluster& cluster, Workers gone, std::vector<std::string>* broken) {
  const ProcessStatus status = cluster.status();
  for (uint32_t i = 0; i < cluster.options().workers; ++i) {
    const bool is_given_up =
        !cluster.worker(i).is_dead() && status.job().members(static_cast<int>(i)).state() == "lost";
    if (is_given_up || cluster.worker(i).processes() > 1) gone.insert(WorkerIndex(i));
  }
  ReplicaHistory views;
  for (const AcceptedView& view : cluster.history().views) {
    if (auto wrong = views.Add(view)) broken->push_back(*wrong);
  }
  Counted counted;
  Epoch epoch;
  for (const Judged& gradient : cluster.history().judged) {
    epoch = gradient.epoch;
    if (gradient.accepted) counted[{gradient.variable, gradient.stamp}].insert(gradient.worker);
  }
  for (GlobalStep step; step < cluster.global_step(); step = step.next()) {
    const ReplicaView* const view = views.At(epoch, step);
    if (view == nullptr) {
      broken->push_back(absl::StrCat("step ", step.value(), " has no replica view"));
      continue;
    }
    if (view->aggregate != view->total()) {
      broken->push_back(absl::StrCat("view ", view->number, " needs ", view->aggregate, " of ",
                                     view->total(), " gradients"));
    }
    const auto lost = std::ranges::count_if(
        view->workers, [&gone](WorkerIndex worker) { return gone.contains(worker); });
    for (uint32_t variable = 0; variable < cluster.options().variables.size(); ++variable) {
      const auto have = std::ssize(counted[{variable, step}]);
      if (have + lost >= view->total()) continue;
      broken->push_back(absl::StrCat("step ", step.value(), " of variable ", variable, " has ",
                                     have, " gradients of ", view->total(), " replicas, of which ",
                                     lost, " were lost"));
    }
  }
}

}  // namespace

std::string SimulateElastic(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0xe1a57);
  SimCluster cluster(ElasticJob(seed, &random), run);
  Workers killed;
  cluster.StartChief();
  PlanComingAndGoing(&random, &cluster, &killed);
  if (!cluster.RunUntil([&] { return cluster.end().has_value(); }, kLimit)) {
    return "no end: " + Describe(cluster);
  }
  std::vector<std::string> broken;
  AppendBadEnd(cluster, &broken);
  AppendWrongSteps(cluster, killed, &broken);
  return absl::StrJoin(broken, "; ");
}

}  // namespace lockstep::sim
