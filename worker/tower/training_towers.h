// All towers of a replica as the training loop sees them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <span>

#include "absl/status/statusor.h"
#include "worker/data/batch.h"
#include "worker/tower/tower_memory.h"

namespace lockstep::worker {

// Not thread-safe: one call at a time.
class TrainingTowers {
 public:
  virtual ~TrainingTowers() = default;

  // Called on the caller's thread as soon as the gradients of these variables (indices into
  // graph.variables()) are final, those of a layer together: each one that is not frozen once, from
  // the last to the first.
  using GradientReady = std::function<void(std::span<const int> variables)>;

  virtual int size() const = 0;
  // One training pass with batches[t] on tower t, all of one size. `memory` has one element that
  // all towers share, or one for each of them, as the implementation says. Returns the mean loss.
  // All work has ended when it returns.
  virtual absl::StatusOr<float> TrainStep(std::span<const Batch> batches,
                                          std::span<const TowerMemory> memory, uint64_t random_key,
                                          const GradientReady& ready) = 0;
};

// Towers drop out independently.
uint64_t KeyOfTower(uint64_t random_key, size_t tower, size_t num_towers);

}  // namespace lockstep::worker
