// Memory of a device that faults when anything touches it but the device's own work.
#pragma once

#include <cstddef>
#include <map>

namespace lockstep::test {

// Not thread-safe.
class GuardedMemory {
 public:
  GuardedMemory();
  ~GuardedMemory();
  GuardedMemory(const GuardedMemory&) = delete;
  GuardedMemory& operator=(const GuardedMemory&) = delete;

  // Bytes that nobody has written: NaN. Null: there is not so much.
  std::byte* Allocate(size_t bytes);
  void Free(std::byte* memory);
  // Lets the memory be touched, or not.
  void Allow(bool access);

 private:
  std::byte* const arena_;
  size_t used_ = 0;  // the arena from its beginning
  std::map<std::byte*, size_t> blocks_;
};

}  // namespace lockstep::test
