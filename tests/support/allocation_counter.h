// Counts what a program allocates: everything that asks for operator new, and the memory of
// tensors. Linked into the test, it takes the place of these functions in the whole program.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::test {

struct Allocations {
  int64_t all = 0;
  int64_t large = 0;
};

// Of all threads, from the beginning of the program. `large` are those of kLargeAllocation bytes
// and more.
inline constexpr size_t kLargeAllocation = size_t{64} << 10;
Allocations AllocationsSoFar();

// What `work` allocates.
template <typename Work>
Allocations AllocationsOf(Work work) {
  const Allocations before = AllocationsSoFar();
  work();
  const Allocations after = AllocationsSoFar();
  return {after.all - before.all, after.large - before.large};
}

}  // namespace lockstep::test
