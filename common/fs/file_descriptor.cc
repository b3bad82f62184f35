#include "common/fs/file_descriptor.h"

#include <unistd.h>

#include <algorithm>
#include <cerrno>

namespace lockstep {
namespace {

constexpr size_t kLargestWrite = size_t{1} << 30;

}  // namespace

FileDescriptor& FileDescriptor::operator=(FileDescriptor&& other) noexcept {
  if (this != &other) {
    Close();
    fd_ = std::exchange(other.fd_, -1);
  }
  return *this;
}

int FileDescriptor::Write(std::span<const std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t written = ::write(fd_, bytes.data(), std::min(bytes.size(), kLargestWrite));
    if (written == 0) return EIO;  // it would take none for ever
    if (written > 0) {
      bytes = bytes.subspan(static_cast<size_t>(written));
    } else if (errno != EINTR) {
      return errno;
    }
  }
  return 0;
}

int FileDescriptor::Close() {
  const int fd = std::exchange(fd_, -1);
  return fd >= 0 && ::close(fd) != 0 ? errno : 0;
}

}  // namespace lockstep
