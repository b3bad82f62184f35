#include "common/client/gradient_memory.h"

#include <optional>
#include <utility>

#include "common/base/status_macros.h"
#include "common/shm/arena.h"

namespace lockstep {
namespace {

constexpr char kSegmentName[] = "lockstep-gradients";

}  // namespace

absl::StatusOr<std::unique_ptr<GradientMemory>> GradientMemory::Create(uint64_t bytes) {
  std::unique_ptr<shm::Arena> arena;
  if (bytes > 0) {
    LOCKSTEP_ASSIGN_OR_RETURN(auto segment, shm::Segment::Create(kSegmentName, bytes));
    arena = std::make_unique<shm::Arena>(std::move(segment));
  }
  return std::unique_ptr<GradientMemory>(new GradientMemory(std::move(arena)));
}

GradientMemory::GradientMemory(std::unique_ptr<shm::Arena> arena) : arena_(std::move(arena)) {}
GradientMemory::~GradientMemory() = default;

Tensor GradientMemory::Take(DType dtype, const Shape& shape) {
  std::optional<Tensor> tensor;
  if (arena_ != nullptr) tensor = arena_->Take(dtype, shape);
  return tensor.has_value() ? *std::move(tensor) : Tensor(dtype, shape);
}

std::shared_ptr<shm::Segment> GradientMemory::segment() const {
  return arena_ == nullptr ? nullptr : arena_->segment();
}

}  // namespace lockstep
