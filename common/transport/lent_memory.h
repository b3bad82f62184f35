// Memory in which a process publishes tensors that its peers read.
#pragma once

#include <cstddef>
#include <memory>
#include <span>

namespace lockstep {

// Zeroed, aligned to 64, and there for as long as `owner` is held.
struct LentMemory {
  std::span<std::byte> bytes;
  std::shared_ptr<const void> owner;
};

}  // namespace lockstep
