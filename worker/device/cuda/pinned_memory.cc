#include "worker/device/cuda/pinned_memory.h"

namespace lockstep::worker::cuda {

void PinnedMemory::Add(const void* memory, size_t bytes) {
  absl::MutexLock lock(&mutex_);
  bytes_[static_cast<const std::byte*>(memory)] = bytes;
}

void PinnedMemory::Remove(const void* memory) {
  absl::MutexLock lock(&mutex_);
  bytes_.erase(static_cast<const std::byte*>(memory));
}

bool PinnedMemory::Contains(std::span<const std::byte> memory) const {
  absl::MutexLock lock(&mutex_);
  auto after = bytes_.upper_bound(memory.data());
  if (after == bytes_.begin()) return false;
  const auto& [begin, bytes] = *--after;
  return memory.data() + memory.size() <= begin + bytes;
}

}  // namespace lockstep::worker::cuda
