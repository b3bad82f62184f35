#include "worker/tower/delayed_tower.h"

#include <utility>

#include "absl/time/clock.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kStallEvery = 4;  // steps

}  // namespace

absl::StatusOr<std::span<const TowerGradient>> DelayedTower::Train(
    const Batch& batch, const VariableValues& variables,
    std::span<const MutableTensorView> gradients, uint64_t random_key) {
  const bool stalls = ++steps_ % kStallEvery == 0;
  absl::SleepFor(delay_.sleep + (stalls ? delay_.stall : absl::ZeroDuration()));
  return tower_->Train(batch, variables, gradients, random_key);
}

std::unique_ptr<Tower> Delayed(std::unique_ptr<Tower> tower, const TowerDelay& delay) {
  if (delay.sleep <= absl::ZeroDuration() && delay.stall <= absl::ZeroDuration()) return tower;
  return std::make_unique<DelayedTower>(std::move(tower), delay);
}

}  // namespace lockstep::worker
