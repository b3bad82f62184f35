// PinnedMemory records the host memory that CUDA's driver has pinned or registered.
#pragma once

#include <cstddef>
#include <map>
#include <span>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace lockstep::worker::cuda {

// Thread-safe. Shared by all GPUs: memory pinned for one of them is pinned for each.
class PinnedMemory {
 public:
  void Add(const void* memory, size_t bytes);
  void Remove(const void* memory);
  // Returns whether one Add covers all of `memory`.
  bool Contains(std::span<const std::byte> memory) const;

 private:
  mutable absl::Mutex mutex_;
  std::map<const std::byte*, size_t> bytes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker::cuda
