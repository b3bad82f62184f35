// Owns a file descriptor.
#pragma once

#include <cstddef>
#include <span>
#include <utility>

namespace lockstep {

// Movable; closes on destruction.
class FileDescriptor {
 public:
  FileDescriptor() = default;
  explicit FileDescriptor(int fd) : fd_(fd) {}
  FileDescriptor(FileDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept;
  ~FileDescriptor() { Close(); }

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }

  // Writes all bytes: goes on after a signal and after a short write. 0, or the error number of
  // write(2), EIO for a file that takes no byte; any number of the bytes may have been written.
  int Write(std::span<const std::byte> bytes) const;
  // 0, or the error number of close(2), after which the descriptor is gone all the same.
  int Close();

 private:
  int fd_ = -1;
};

}  // namespace lockstep
