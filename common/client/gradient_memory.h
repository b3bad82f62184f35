// The memory into which a worker computes its gradients, so that a ps of its host can read them
// where they are.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"
#include "common/tensor/tensor.h"

namespace lockstep {

namespace shm {
class Arena;
class Segment;
}  // namespace shm

// Not thread-safe. The tensors outlive it, and a ps may read what was pushed for as long as it
// holds it, whatever becomes of the worker.
class GradientMemory {
 public:
  // For tensors that take so many bytes in all (Tensor::RoomFor); 0: of none. RESOURCE_EXHAUSTED:
  // the machine has not enough.
  static absl::StatusOr<std::unique_ptr<GradientMemory>> Create(uint64_t bytes);
  ~GradientMemory();

  // From the heap when all has been taken.
  Tensor Take(DType dtype, const Shape& shape);
  // Null when it is of no bytes.
  std::shared_ptr<shm::Segment> segment() const;

 private:
  explicit GradientMemory(std::unique_ptr<shm::Arena> arena);

  const std::unique_ptr<shm::Arena> arena_;
};

}  // namespace lockstep
