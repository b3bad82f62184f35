#include "common/shm/arena.h"

#include <algorithm>

namespace lockstep::shm {

uint64_t RoomFor(uint64_t bytes) {
  return std::max<uint64_t>(1, (bytes + Tensor::kAlignment - 1) / Tensor::kAlignment) *
         Tensor::kAlignment;
}

std::optional<Tensor> Arena::Take(DType dtype, const Shape& shape) {
  const uint64_t room = RoomFor(static_cast<uint64_t>(shape.num_elements()) * SizeOf(dtype));
  const std::span<std::byte> bytes = segment_->bytes();
  if (room > bytes.size() - used_) return std::nullopt;
  Tensor tensor = Tensor::Borrow(dtype, shape, bytes.data() + used_, segment_);
  used_ += room;
  return tensor;
}

}  // namespace lockstep::shm
