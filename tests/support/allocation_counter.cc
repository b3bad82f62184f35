#include "tests/support/allocation_counter.h"

#include <malloc.h>

#include <atomic>
#include <cerrno>
#include <cstdlib>
#include <new>

namespace lockstep::test {
namespace {

std::atomic<int64_t> all = 0;
std::atomic<int64_t> large = 0;

void Count(size_t size) {
  all.fetch_add(1, std::memory_order_relaxed);
  if (size >= kLargeAllocation) large.fetch_add(1, std::memory_order_relaxed);
}

void* New(size_t size) {
  Count(size);
  void* const memory = std::malloc(size == 0 ? 1 : size);
  if (memory == nullptr) std::abort();
  return memory;
}

void* Aligned(size_t alignment, size_t size) {
  Count(size);
  return memalign(alignment, size);  // all others are defined here
}

}  // namespace

Allocations AllocationsSoFar() {
  return {all.load(std::memory_order_relaxed), large.load(std::memory_order_relaxed)};
}

}  // namespace lockstep::test

void* operator new(size_t size) { return lockstep::test::New(size); }
void* operator new[](size_t size) { return lockstep::test::New(size); }
void* operator new(size_t size, const std::nothrow_t&) noexcept {
  return lockstep::test::New(size);
}
void* operator new(size_t size, std::align_val_t alignment) {
  return lockstep::test::Aligned(static_cast<size_t>(alignment), size);
}
void* operator new(size_t size, std::align_val_t alignment, const std::nothrow_t&) noexcept {
  return lockstep::test::Aligned(static_cast<size_t>(alignment), size);
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete[](void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, size_t) noexcept { std::free(memory); }
void operator delete[](void* memory, size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, size_t, std::align_val_t) noexcept { std::free(memory); }

extern "C" {

void* aligned_alloc(size_t alignment, size_t size) {
  return lockstep::test::Aligned(alignment, size);
}

int posix_memalign(void** memory, size_t alignment, size_t size) {
  *memory = lockstep::test::Aligned(alignment, size);
  return *memory == nullptr ? ENOMEM : 0;
}

}  // extern "C"
