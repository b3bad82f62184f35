#include "common/shm/arena.h"

namespace lockstep::shm {

std::optional<Tensor> Arena::Take(DType dtype, const Shape& shape) {
  const uint64_t room = Tensor::RoomFor(static_cast<size_t>(shape.num_elements()) * SizeOf(dtype));
  const std::span<std::byte> bytes = segment_->bytes();
  if (room > bytes.size() - used_) return std::nullopt;
  Tensor tensor = Tensor::Borrow(dtype, shape, bytes.data() + used_, segment_);
  used_ += room;
  return tensor;
}

}  // namespace lockstep::shm
