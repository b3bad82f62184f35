// A variable's values in half the width, for those who pull them so: each is made once, for all of
// them, and as soon as somebody has asked, together with the value itself.
#pragma once

#include <array>
#include <atomic>
#include <memory>
#include <vector>

#include "common/tensor/tensor.h"
#include "common/update/buffer_pool.h"

namespace lockstep {

// Of a float32 variable. Of and Add are guarded by the owner's lock.
class LowPrecisionCache {
 public:
  explicit LowPrecisionCache(const Shape& shape);

  // `value`, one of the variable's, as float16 or bfloat16 (CHECK); made here when it is not there.
  std::shared_ptr<const Tensor> Of(const std::shared_ptr<const Tensor>& value, DType type);

  // For who makes the next value, without the lock: memory for it in the type that was asked for
  // last, with any contents; null when nobody has asked.
  std::shared_ptr<ValueBuffer> TakeBuffer() const;
  // `narrow` is `value`.
  void Add(const std::shared_ptr<const Tensor>& value, std::shared_ptr<const Tensor> narrow);

 private:
  struct Made {
    std::weak_ptr<const Tensor> value;
    std::shared_ptr<const Tensor> narrow;
  };

  BufferPool& RecyclerOf(DType type) const;

  const std::array<std::shared_ptr<BufferPool>, 2> pools_;  // by type
  std::vector<Made> made_;  // of values that somebody can still read
  // What was asked for last; float32: nothing.
  std::atomic<DType> wanted_ = DType::kFloat32;
};

}  // namespace lockstep
