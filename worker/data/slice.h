// Slice computes the positions of the stream that belong to a step, a replica and a tower.
#pragma once

#include <cstdint>

#include "absl/status/statusor.h"
#include "worker/data/pipeline.h"

namespace lockstep::worker {

// A value. Step s takes the global batch [s * G, (s + 1) * G), replica r its r-th equal part, tower
// t the t-th equal part of that.
class Slice {
 public:
  // INVALID_ARGUMENT naming the invalid number: no replicas, towers or examples, a replica out of
  // range, or a global batch that does not fit into an int64.
  static absl::StatusOr<Slice> Create(const PipelineOptions& options);

  // The first of the batch_per_tower() positions; step <= last_step().
  int64_t Begin(int64_t step, int64_t tower) const {
    return step * global_batch_ + replica_begin_ + tower * batch_per_tower_;
  }
  int64_t batch_per_tower() const { return batch_per_tower_; }
  int64_t towers() const { return towers_; }
  int64_t global_batch() const { return global_batch_; }
  // Positions of later steps do not fit into an int64.
  int64_t last_step() const;

 private:
  Slice() = default;
  int64_t batch_per_tower_ = 0;
  int64_t towers_ = 0;
  int64_t global_batch_ = 0;
  int64_t replica_begin_ = 0;
};

}  // namespace lockstep::worker
