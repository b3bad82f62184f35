#include "common/update/low_precision_cache.h"

#include <utility>

#include "common/base/check.h"
#include "common/tensor/half_copy.h"
#include "common/tensor/half_width.h"

namespace lockstep {

LowPrecisionCache::LowPrecisionCache(const Shape& shape)
    : pools_({BufferPool::Create(DType::kFloat16, shape),
              BufferPool::Create(DType::kBFloat16, shape)}) {}

BufferPool& LowPrecisionCache::RecyclerOf(DType type) const {
  LOCKSTEP_CHECK(IsHalfWidth(type));
  return *pools_[type == DType::kFloat16 ? 0 : 1];
}

std::shared_ptr<const Tensor> LowPrecisionCache::Of(const std::shared_ptr<const Tensor>& value,
                                                    DType type) {
  wanted_.store(type, std::memory_order_relaxed);
  for (const Made& made : made_) {
    if (made.narrow->dtype() == type && made.value.lock() == value) return made.narrow;
  }
  std::shared_ptr<ValueBuffer> buffer = RecyclerOf(type).Take();
  Narrow(value->as<float>(), type, buffer->tensor.data());
  std::shared_ptr<const Tensor> narrow = BufferPool::Share(std::move(buffer));
  Add(value, narrow);
  return narrow;
}

std::shared_ptr<ValueBuffer> LowPrecisionCache::TakeBuffer() const {
  const DType type = wanted_.load(std::memory_order_relaxed);
  return type == DType::kFloat32 ? nullptr : RecyclerOf(type).Take();
}

void LowPrecisionCache::Add(const std::shared_ptr<const Tensor>& value,
                            std::shared_ptr<const Tensor> narrow) {
  std::erase_if(made_, [](const Made& made) { return made.value.expired(); });
  made_.push_back({value, std::move(narrow)});
}

}  // namespace lockstep
