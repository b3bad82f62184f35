#include "tests/sim/scenarios/standbys.h"

#include <utility>

#include "tests/sim/scenarios/cuts.h"
#include "tests/sim/scenarios/jobs.h"
#include "tests/sim/scenarios/simulations.h"

namespace lockstep::sim {
namespace {

// Of a worker, until a chief hears of it: longer than a lease and a take-over.
constexpr absl::Duration kLongestDelay = absl::Seconds(12);

// How often `lockstep up` looks.
constexpr absl::Duration kRestartPoll = absl::Seconds(1);

// Once the end is being told, another chief has nothing to take over.
bool IsTellingTheEnd(SimCluster* cluster) {
  return cluster->end().has_value() || cluster->status().state() == "done";
}

}  // namespace

// One that has never commanded is started again as it was: nobody would take its place.
void DisturbChief(SimCluster* cluster, Random* random) {
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

// A chief that takes command while the ps hear that the job is over waits for them, gives up, and
// hears of the end when it stands by again.
void RestartEndedChiefs(SimCluster* cluster) {
  cluster->events().After(kRestartPoll, [cluster] {
    cluster->chief().RestartEnded();
    RestartEndedChiefs(cluster);
  });
}

void AppendBadEnds(SimCluster* cluster, std::vector<std::string>* broken) {
  // Standbys, also one that waits for an answer that has been lost, and chiefs that are still
  // stopped.
  cluster->RunUntil([] { return false; }, 2 * rpc::kParkedDeadline);
  cluster->RunUntil([cluster] { return cluster->chief().HaveEnded(); }, kLimit);
  if (std::string bad = BadEnds(cluster); !bad.empty()) broken->push_back(std::move(bad));
  if (cluster->global_step() != GlobalStep(cluster->options().steps)) {
    broken->push_back("not all steps were made");
  }
}

namespace {

// A worker dies with the chief. The next chief has adopted the others, or all of them, when the
// registration of its successor reaches it: that is started late, or not heard at first.
void DisturbWithWorker(SimCluster* cluster, Random* random) {
  if (IsTellingTheEnd(cluster)) return;
  SimChiefs& chief = cluster->chief();
  chief.Kill();
  chief.has_commanded() ? chief.StartStandby() : chief.Start();
  const auto index = static_cast<uint32_t>(random->Below(cluster->options().workers));
  SimWorker* const worker = &cluster->worker(index);
  worker->Kill();
  const absl::Duration delay = random->Between(absl::ZeroDuration(), kLongestDelay);
  if (random->Chance(0.5)) {
    cluster->events().After(delay, [worker] { worker->Start(); });
    return;
  }
  for (uint32_t i = 0; i < chief.num_processes(); ++i) {
    cluster->network().Cut({{Role::kWorker, index}, {Role::kChief, i}}, delay);
  }
  worker->Start();
}

using Disturbance = void (*)(SimCluster* cluster, Random* random);

void PlanDisturbances(Disturbance disturb, const std::shared_ptr<Random>& random,
                      SimCluster* cluster) {
  absl::Duration when = absl::ZeroDuration();
  for (int64_t times = random->Between(1, 4); times > 0; --times) {
    when += random->Between(absl::ZeroDuration(), absl::Milliseconds(120));
    cluster->events().After(when, [disturb, random, cluster] { disturb(cluster, random.get()); });
    if (random->Chance(0.5)) when += random->Between(absl::ZeroDuration(), absl::Seconds(8));
  }
}

std::string SimulateWithStandbys(const SimOptions& job, Disturbance disturb, bool is_cut,
                                 SimRun* run) {
  SimOptions options = job;
  options.chiefs = 2;
  const auto random = std::make_shared<Random>(job.seed ^ 0xdead);
  const auto plan = [&](SimCluster* cluster) {
    for (int64_t standbys = random->Between(1, 3); standbys > 0; --standbys) {
      cluster->chief().StartStandby();
    }
    PlanDisturbances(disturb, random, cluster);
    if (is_cut) PlanCuts({}, random, cluster);
    RestartEndedChiefs(cluster);
  };
  return CompareDisturbed(options, options, plan, AppendBadEnds, run);
}

SimOptions JobWithStandbys(uint64_t seed) { return SmallJob(seed, Random(seed ^ 0x57a4d)); }

}  // namespace

std::string SimulateStandbys(uint64_t seed, SimRun* run) {
  return SimulateWithStandbys(JobWithStandbys(seed), DisturbChief, /*is_cut=*/false, run);
}

std::string SimulateStandbysCut(uint64_t seed, SimRun* run) {
  return SimulateWithStandbys(JobWithStandbys(seed), DisturbChief, /*is_cut=*/true, run);
}

std::string SimulateStandbysLateWorker(uint64_t seed, SimRun* run) {
  Random random(seed ^ 0x1a7e);
  SimOptions options = JobWithStandbys(seed);
  if (random.Chance(0.5)) options.network = RoughNetwork(&random);
  return SimulateWithStandbys(options, DisturbWithWorker, /*is_cut=*/false, run);
}

}  // namespace lockstep::sim
