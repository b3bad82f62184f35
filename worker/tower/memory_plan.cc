#include "worker/tower/memory_plan.h"

#include <algorithm>
#include <numeric>

#include "common/tensor/tensor.h"

namespace lockstep::worker {
namespace {

size_t Aligned(size_t bytes) {
  return (bytes + Tensor::kAlignment - 1) / Tensor::kAlignment * Tensor::kAlignment;
}

bool Overlap(const BufferLife& a, const BufferLife& b) {
  return a.first <= b.last && b.first <= a.last;
}

}  // namespace

MemoryPlan PlanMemory(std::span<const BufferLife> buffers) {
  std::vector<size_t> order(buffers.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return buffers[a].bytes > buffers[b].bytes; });
  MemoryPlan plan;
  plan.offsets.resize(buffers.size());
  std::vector<size_t> placed;  // ascending offsets
  for (size_t buffer : order) {
    const size_t size = Aligned(buffers[buffer].bytes);
    size_t offset = 0;
    for (size_t other : placed) {
      if (!Overlap(buffers[buffer], buffers[other])) continue;
      if (plan.offsets[other] >= offset + size) break;
      offset = std::max(offset, plan.offsets[other] + Aligned(buffers[other].bytes));
    }
    plan.offsets[buffer] = offset;
    plan.total = std::max(plan.total, offset + size);
    placed.insert(
        std::upper_bound(placed.begin(), placed.end(), buffer,
                         [&](size_t a, size_t b) { return plan.offsets[a] < plan.offsets[b]; }),
        buffer);
  }
  return plan;
}

}  // namespace lockstep::worker
