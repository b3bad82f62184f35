// A maker of tensors that remembers what it has made.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/tensor/tensor_maker.h"

namespace lockstep::test {

// Thread-safe. The maker may outlive it.
class MadeTensors {
 public:
  TensorMaker maker() const {
    return [ranges = ranges_](DType dtype, const Shape& shape) {
      Tensor tensor(dtype, shape);
      const auto* const begin = static_cast<const std::byte*>(tensor.data());
      absl::MutexLock lock(&ranges->mutex);
      ranges->made.emplace_back(begin, begin + Tensor::RoomFor(tensor.num_bytes()));
      return tensor;
    };
  }
  // Whether it has made a tensor there.
  bool Has(const void* data) const {
    const auto* const at = static_cast<const std::byte*>(data);
    absl::MutexLock lock(&ranges_->mutex);
    for (const auto& [begin, end] : ranges_->made) {
      if (!std::less<>()(at, begin) && std::less<>()(at, end)) return true;
    }
    return false;
  }

 private:
  struct Ranges {
    absl::Mutex mutex;
    std::vector<std::pair<const std::byte*, const std::byte*>> made ABSL_GUARDED_BY(mutex);
  };
  const std::shared_ptr<Ranges> ranges_ = std::make_shared<Ranges>();
};

}  // namespace lockstep::test
