// Memory of published values, used again when the last reader has let go, so that a step allocates
// nothing and never waits for a reader: while readers hold every buffer, a new one is made.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <optional>

#include "common/base/ids.h"
#include "common/tensor/tensor.h"

namespace lockstep::ps {

struct ValueBuffer {
  Tensor tensor;
  std::optional<GlobalStep> version;  // whose values it holds; otherwise any contents
};

// Thread-safe; lives as long as any value that it shared.
class BufferRecycler : public std::enable_shared_from_this<BufferRecycler> {
 public:
  static std::shared_ptr<BufferRecycler> Create(DType dtype, const Shape& shape);
  ~BufferRecycler();

  // A buffer that nobody reads.
  std::unique_ptr<ValueBuffer> Take();
  // Makes a buffer readable. It comes back when the last copy of the pointer goes, on whatever
  // thread that is.
  std::shared_ptr<const Tensor> Share(std::unique_ptr<ValueBuffer> value);

 private:
  BufferRecycler(DType dtype, const Shape& shape) : dtype_(dtype), shape_(shape) {}
  void GiveBack(std::unique_ptr<ValueBuffer> buffer);

  const DType dtype_;
  const Shape shape_;
  // Empty places are null. Two are enough: one version is written while two are readable.
  std::array<std::atomic<ValueBuffer*>, 2> free_ = {};
};

}  // namespace lockstep::ps
