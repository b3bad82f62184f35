#include "ps/variable/buffer_recycler.h"

namespace lockstep::ps {

std::shared_ptr<BufferRecycler> BufferRecycler::Create(DType dtype, const Shape& shape) {
  return std::shared_ptr<BufferRecycler>(new BufferRecycler(dtype, shape));
}

BufferRecycler::~BufferRecycler() {
  for (std::atomic<Tensor*>& place : free_) delete place.load(std::memory_order_acquire);
}

std::unique_ptr<Tensor> BufferRecycler::Take() {
  for (std::atomic<Tensor*>& place : free_) {
    if (Tensor* buffer = place.exchange(nullptr, std::memory_order_acquire)) {
      return std::unique_ptr<Tensor>(buffer);
    }
  }
  return std::make_unique<Tensor>(dtype_, shape_);
}

std::shared_ptr<const Tensor> BufferRecycler::Share(std::unique_ptr<Tensor> value) {
  return std::shared_ptr<const Tensor>(value.release(),
                                       [self = shared_from_this()](Tensor* buffer) {
                                         self->GiveBack(std::unique_ptr<Tensor>(buffer));
                                       });
}

void BufferRecycler::GiveBack(std::unique_ptr<Tensor> buffer) {
  for (std::atomic<Tensor*>& place : free_) {
    Tensor* empty = nullptr;
    if (place.compare_exchange_strong(empty, buffer.get(), std::memory_order_acq_rel)) {
      buffer.release();
      return;
    }
  }
}

}  // namespace lockstep::ps
