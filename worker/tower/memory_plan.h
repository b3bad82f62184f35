// PlanMemory places buffers that are not all alive at once in one block of memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace lockstep::worker {

struct BufferLife {
  size_t bytes = 0;
  int first = 0;  // times at which the buffer is in use, both included
  int last = 0;
};

struct MemoryPlan {
  std::vector<size_t> offsets;  // of each buffer, aligned to Tensor::kAlignment
  size_t total = 0;
};

// Buffers that are in use at the same time do not overlap. Places the largest first, each at the
// lowest offset where it fits. This is near the optimum for networks, whose lifetimes nest.
MemoryPlan PlanMemory(std::span<const BufferLife> buffers);

}  // namespace lockstep::worker
