#include "tests/sim/scenarios/deaths.h"

namespace lockstep::sim {
namespace {

// Of a process, in one of these.
constexpr int kSaveOperations = 30;
constexpr int kCommitOperations = 80;

}  // namespace

bool Trains(SimCluster* cluster) {
  return !cluster->end().has_value() && cluster->status().state() != "done" &&
         cluster->global_step() < GlobalStep(cluster->options().steps);
}

void KillPs(uint32_t index, absl::Duration pause, Random* random, SimCluster* cluster) {
  SimPs& ps = cluster->ps(index);
  if (!Trains(cluster) || !ps.is_alive()) return;
  const auto start_later = [cluster, index, pause] {
    cluster->events().After(pause, [cluster, index] { cluster->ps(index).Start(); });
  };
  if (random->Chance(0.3)) {
    return ps.KillInNextSave(
        {.operation = random->Between(1, kSaveOperations), .died = start_later});
  }
  ps.Kill();
  start_later();
}

void KillChief(absl::Duration pause, Random* random, SimCluster* cluster) {
  if (!Trains(cluster)) return;
  const auto start_later = [cluster, pause] {
    cluster->events().After(pause, [cluster] { cluster->StartChief(); });
  };
  if (random->Chance(0.5)) {
    return cluster->chief().KillAtDisk(
        {.operation = random->Between(1, kCommitOperations), .died = start_later});
  }
  cluster->chief().Kill();
  start_later();
}

}  // namespace lockstep::sim
