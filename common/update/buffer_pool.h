// Memory of published values, used again when the last reader has let go, so that a step allocates
// nothing and never waits for a reader: while readers hold every buffer, a new one is made. Beyond
// kKept, what comes back is let go: slow readers cost memory for as long as they read.
//
// Some of the memory may be such that others look at it without holding anything (SharedBuffer). It
// is used before any other; a sequence lock tells them what is there.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "common/base/ids.h"
#include "common/tensor/seq_lock.h"
#include "common/tensor/tensor.h"
#include "common/tensor/tensor_maker.h"

namespace lockstep {

struct ValueBuffer {
  Tensor tensor;
  std::optional<GlobalStep> version;  // whose values it holds; otherwise any contents
  SeqLock* seq_lock = nullptr;        // of a shared buffer; the tensor's owner keeps it
};

// Zeroed memory, aligned as a tensor's: the sequence lock, and behind it the value.
struct SharedBuffer {
  std::byte* memory;
  std::shared_ptr<const void> owner;
};
// Bytes that a shared buffer of a value takes.
uint64_t SharedBufferBytes(uint64_t value_bytes);
// A value buffer in the shared buffer, with a sequence lock of its own.
ValueBuffer BufferIn(SharedBuffer shared, DType dtype, const Shape& shape);

// Thread-safe; lives as long as any value that it shared.
class BufferPool : public std::enable_shared_from_this<BufferPool> {
 public:
  static constexpr size_t kMaxShared = 3;
  // One version is written while two are readable.
  static constexpr int kKept = 3;

  // At most kMaxShared shared buffers (CHECK). `make` makes the others.
  static std::shared_ptr<BufferPool> Create(DType dtype, const Shape& shape,
                                            std::vector<SharedBuffer> shared = {},
                                            TensorMaker make = OnHeap);
  ~BufferPool();

  // Makes a buffer of a tensor of this dtype and shape that was made elsewhere.
  std::shared_ptr<ValueBuffer> Adopt(Tensor value, GlobalStep version);
  // A buffer that nobody reads. It comes back when the last copy of the pointer goes, and of what
  // Share makes of it, on whatever thread that is.
  std::shared_ptr<ValueBuffer> Take();
  // Makes a buffer, of which the version is set, readable.
  static std::shared_ptr<const Tensor> Share(std::shared_ptr<ValueBuffer> value);

  // Shared and made, free and in use.
  int num_buffers() const { return num_buffers_.load(); }

 private:
  BufferPool(DType dtype, const Shape& shape, TensorMaker make)
      : dtype_(dtype), shape_(shape), make_(std::move(make)) {}
  std::unique_ptr<ValueBuffer> TakeAny();
  std::shared_ptr<ValueBuffer> Lend(std::unique_ptr<ValueBuffer> buffer);
  void GiveBack(std::unique_ptr<ValueBuffer> buffer);

  const DType dtype_;
  const Shape shape_;
  const TensorMaker make_;
  // Where there is no buffer, null. Shared ones are never released.
  std::array<std::atomic<ValueBuffer*>, kMaxShared> free_shared_ = {};
  std::array<std::atomic<ValueBuffer*>, kKept> free_ = {};
  std::atomic<int> num_buffers_ = 0;
};

}  // namespace lockstep
