// A tower whose training takes longer than it has to: for trials of slow workers.
#pragma once

#include <memory>
#include <span>

#include "absl/time/time.h"
#include "worker/tower/tower.h"

namespace lockstep::worker {

struct TowerDelay {
  absl::Duration sleep;  // each step computes this much longer
  absl::Duration stall;  // every fourth step computes this much longer still
};

class DelayedTower : public Tower {
 public:
  DelayedTower(std::unique_ptr<Tower> tower, const TowerDelay& delay)
      : tower_(std::move(tower)), delay_(delay) {}

  // Sleeps, then trains.
  absl::StatusOr<std::span<const TowerGradient>> Train(const Batch& batch,
                                                       const VariableValues& variables,
                                                       std::span<const MutableTensorView> gradients,
                                                       uint64_t random_key) override;
  absl::Status Finish() override { return tower_->Finish(); }
  float loss() const override { return tower_->loss(); }
  absl::StatusOr<Evaluation> Evaluate(const Batch& batch,
                                      const VariableValues& variables) override {
    return tower_->Evaluate(batch, variables);
  }
  absl::StatusOr<TensorView> Predict(const Batch& batch, const VariableValues& variables,
                                     uint64_t random_key) override {
    return tower_->Predict(batch, variables, random_key);
  }

 private:
  const std::unique_ptr<Tower> tower_;
  const TowerDelay delay_;
  int64_t steps_ = 0;
};

// The tower itself where there is no delay.
std::unique_ptr<Tower> Delayed(std::unique_ptr<Tower> tower, const TowerDelay& delay);

}  // namespace lockstep::worker
