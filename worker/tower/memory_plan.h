// Where buffers that are not all alive at once lie in one block of memory.
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

// No two buffers that are in use at the same time overlap. Places the largest first, each as low as
// it fits: near the optimum for networks, whose lives nest.
MemoryPlan PlanMemory(std::span<const BufferLife> buffers);

}  // namespace lockstep::worker
