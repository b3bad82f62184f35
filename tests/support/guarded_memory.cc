#include "tests/support/guarded_memory.h"

#include <sys/mman.h>

#include <algorithm>
#include <cstring>

#include "common/base/check.h"
#include "common/tensor/tensor.h"

namespace lockstep::test {
namespace {

constexpr size_t kArenaBytes = size_t{1} << 32;  // reserved, not used
constexpr int kUnset = 0xff;                     // four such bytes are NaN

std::byte* ReserveArena() {
  void* const memory =
      mmap(nullptr, kArenaBytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  LOCKSTEP_CHECK(memory != MAP_FAILED);
  return static_cast<std::byte*>(memory);
}

}  // namespace

GuardedMemory::GuardedMemory() : arena_(ReserveArena()) {}

GuardedMemory::~GuardedMemory() { munmap(arena_, kArenaBytes); }

std::byte* GuardedMemory::Allocate(size_t bytes) {
  const size_t size = Tensor::RoomFor(bytes);
  // The first gap that is large enough.
  std::byte* at = arena_;
  for (const auto& [begin, length] : blocks_) {
    if (static_cast<size_t>(begin - at) >= size) break;
    at = begin + length;
  }
  if (size > kArenaBytes - static_cast<size_t>(at - arena_)) return nullptr;
  blocks_[at] = size;
  used_ = std::max(used_, static_cast<size_t>(at - arena_) + size);
  Allow(true);
  std::memset(at, kUnset, size);
  Allow(false);
  return at;
}

void GuardedMemory::Free(std::byte* memory) { blocks_.erase(memory); }

void GuardedMemory::Allow(bool access) {
  if (used_ == 0) return;
  LOCKSTEP_CHECK(mprotect(arena_, used_, access ? PROT_READ | PROT_WRITE : PROT_NONE) == 0);
}

}  // namespace lockstep::test
