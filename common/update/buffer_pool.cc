#include "common/update/buffer_pool.h"

#include <new>
#include <span>
#include <utility>

#include "common/base/check.h"

namespace lockstep {
namespace {

using Free = std::span<std::atomic<ValueBuffer*>>;

std::unique_ptr<ValueBuffer> TakeFrom(Free free) {
  for (std::atomic<ValueBuffer*>& entry : free) {
    if (entry.load(std::memory_order_relaxed) == nullptr) continue;
    if (ValueBuffer* buffer = entry.exchange(nullptr, std::memory_order_acquire)) {
      return std::unique_ptr<ValueBuffer>(buffer);
    }
  }
  return nullptr;
}

// False, and the buffer is gone, where all is full.
bool PutInto(Free free, std::unique_ptr<ValueBuffer> buffer) {
  for (std::atomic<ValueBuffer*>& entry : free) {
    if (entry.load(std::memory_order_relaxed) != nullptr) continue;
    ValueBuffer* empty = nullptr;
    if (entry.compare_exchange_strong(empty, buffer.get(), std::memory_order_acq_rel)) {
      static_cast<void>(buffer.release());  // it is the pool's
      return true;
    }
  }
  return false;
}

}  // namespace

uint64_t SharedBufferBytes(uint64_t value_bytes) {
  return SeqLock::kRoom + Tensor::RoomFor(value_bytes);
}

ValueBuffer BufferIn(SharedBuffer shared, DType dtype, const Shape& shape) {
  auto* const seq_lock = new (shared.memory) SeqLock;
  return {Tensor::Borrow(dtype, shape, shared.memory + SeqLock::kRoom, std::move(shared.owner)),
          std::nullopt, seq_lock};
}

std::shared_ptr<BufferPool> BufferPool::Create(DType dtype, const Shape& shape,
                                               std::vector<SharedBuffer> shared, TensorMaker make) {
  LOCKSTEP_CHECK(shared.size() <= kMaxShared);
  std::shared_ptr<BufferPool> pool(new BufferPool(dtype, shape, std::move(make)));
  for (SharedBuffer& buffer : shared) {
    PutInto(pool->free_shared_,
            std::make_unique<ValueBuffer>(BufferIn(std::move(buffer), dtype, shape)));
    ++pool->num_buffers_;
  }
  return pool;
}

std::shared_ptr<ValueBuffer> BufferPool::Adopt(Tensor value, GlobalStep version) {
  ++num_buffers_;
  return Lend(std::make_unique<ValueBuffer>(ValueBuffer{std::move(value), version}));
}

BufferPool::~BufferPool() {
  while (TakeFrom(free_shared_) != nullptr) continue;
  while (TakeFrom(free_) != nullptr) continue;
}

std::shared_ptr<ValueBuffer> BufferPool::Take() {
  std::unique_ptr<ValueBuffer> buffer = TakeAny();
  if (buffer->seq_lock != nullptr) buffer->seq_lock->BeginWriting();
  return Lend(std::move(buffer));
}

std::unique_ptr<ValueBuffer> BufferPool::TakeAny() {
  if (auto buffer = TakeFrom(free_shared_)) return buffer;
  if (auto buffer = TakeFrom(free_)) return buffer;
  ++num_buffers_;
  return std::make_unique<ValueBuffer>(ValueBuffer{make_(dtype_, shape_), std::nullopt});
}

std::shared_ptr<ValueBuffer> BufferPool::Lend(std::unique_ptr<ValueBuffer> buffer) {
  return std::shared_ptr<ValueBuffer>(buffer.release(),
                                      [self = shared_from_this()](ValueBuffer* returned) {
                                        self->GiveBack(std::unique_ptr<ValueBuffer>(returned));
                                      });
}

std::shared_ptr<const Tensor> BufferPool::Share(std::shared_ptr<ValueBuffer> value) {
  if (value->seq_lock != nullptr) value->seq_lock->Publish(value->version->value());
  const Tensor* const tensor = &value->tensor;
  return std::shared_ptr<const Tensor>(std::move(value), tensor);
}

void BufferPool::GiveBack(std::unique_ptr<ValueBuffer> buffer) {
  const bool is_shared = buffer->seq_lock != nullptr;
  int buffers = num_buffers_.load();
  while (!is_shared && buffers > kKept) {
    if (num_buffers_.compare_exchange_weak(buffers, buffers - 1)) return;
  }
  const Free free = is_shared ? Free(free_shared_) : Free(free_);
  if (!PutInto(free, std::move(buffer))) --num_buffers_;
}

}  // namespace lockstep
