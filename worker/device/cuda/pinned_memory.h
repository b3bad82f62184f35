// Which memory of the host CUDA's driver has pinned or registered.
#pragma once

#include <cstddef>
#include <map>
#include <span>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace lockstep::worker::cuda {

// Thread-safe. Of all GPUs: what is pinned for one of them is pinned for each.
class PinnedMemory {
 public:
  void Add(const void* memory, size_t bytes);
  void Remove(const void* memory);
  // Whether all of `memory` was added at once.
  bool Contains(std::span<const std::byte> memory) const;

 private:
  mutable absl::Mutex mutex_;
  std::map<const std::byte*, size_t> bytes_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker::cuda
