// Tensors side by side in a segment. What is given out is never given out again.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "common/shm/segment.h"
#include "common/tensor/tensor.h"

namespace lockstep::shm {

// Not thread-safe. Each tensor takes Tensor::RoomFor its bytes. The tensors keep the segment, not
// the arena.
class Arena {
 public:
  explicit Arena(std::shared_ptr<Segment> segment) : segment_(std::move(segment)) {}

  const std::shared_ptr<Segment>& segment() const { return segment_; }
  // nullopt when too little is left.
  std::optional<Tensor> Take(DType dtype, const Shape& shape);

 private:
  const std::shared_ptr<Segment> segment_;
  uint64_t used_ = 0;
};

}  // namespace lockstep::shm
