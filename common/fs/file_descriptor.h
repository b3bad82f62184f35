// Owns a file descriptor.
#pragma once

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

  // 0, or the error number of close(2), after which the descriptor is gone all the same.
  int Close();

 private:
  int fd_ = -1;
};

}  // namespace lockstep
