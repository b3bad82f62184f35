#include "ps/variable/buffer_recycler.h"

namespace lockstep::ps {

std::shared_ptr<BufferRecycler> BufferRecycler::Create(DType dtype, const Shape& shape) {
  return std::shared_ptr<BufferRecycler>(new BufferRecycler(dtype, shape));
}

BufferRecycler::~BufferRecycler() {
  for (std::atomic<ValueBuffer*>& place : free_) delete place.load(std::memory_order_acquire);
}

std::unique_ptr<ValueBuffer> BufferRecycler::Take() {
  for (std::atomic<ValueBuffer*>& place : free_) {
    if (ValueBuffer* buffer = place.exchange(nullptr, std::memory_order_acquire)) {
      return std::unique_ptr<ValueBuffer>(buffer);
    }
  }
  return std::make_unique<ValueBuffer>(ValueBuffer{Tensor(dtype_, shape_), std::nullopt});
}

std::shared_ptr<const Tensor> BufferRecycler::Share(std::unique_ptr<ValueBuffer> value) {
  ValueBuffer* const buffer = value.release();
  return std::shared_ptr<const Tensor>(&buffer->tensor,
                                       [self = shared_from_this(), buffer](const Tensor*) {
                                         self->GiveBack(std::unique_ptr<ValueBuffer>(buffer));
                                       });
}

void BufferRecycler::GiveBack(std::unique_ptr<ValueBuffer> buffer) {
  for (std::atomic<ValueBuffer*>& place : free_) {
    ValueBuffer* empty = nullptr;
    if (place.compare_exchange_strong(empty, buffer.get(), std::memory_order_acq_rel)) {
      buffer.release();
      return;
    }
  }
}

}  // namespace lockstep::ps
