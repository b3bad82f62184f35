#include "common/fs/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/fs/fs_error.h"

namespace lockstep {
namespace {

constexpr size_t kPiece = size_t{1} << 16;  // a pipe's usual capacity

absl::Status TooLarge(const std::string& path, size_t max_bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": larger than the ", max_bytes, " bytes that are allowed here"));
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  const FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file.valid()) return ReadError(path, "open", errno);
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return ReadError(path, "stat", errno);
  std::string contents;
  if (S_ISREG(info.st_mode)) {
    if (static_cast<uint64_t>(info.st_size) > max_bytes) return TooLarge(path, max_bytes);
    // One byte more shows the end of the file without growing the buffer.
    contents.reserve(static_cast<size_t>(info.st_size) + 1);
  }
  size_t length = 0;
  while (true) {
    if (length == contents.size())
      contents.resize(std::max(contents.capacity(), 2 * length + kPiece));
    const ssize_t got = ::read(file.get(), contents.data() + length, contents.size() - length);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ReadError(path, "read", errno);
    if (got == 0) break;
    length += static_cast<size_t>(got);
    if (length > max_bytes) return TooLarge(path, max_bytes);
  }
  contents.resize(length);
  return contents;
}

InputFile::InputFile(std::string path, FileDescriptor file, uint64_t size)
    : path_(std::move(path)), file_(std::move(file)), size_(size) {}

absl::StatusOr<InputFile> InputFile::Open(const std::string& path) {
  // A pipe must not block the open: it is refused below.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  if (!file.valid()) return ReadError(path, "open", errno);
  struct stat info;
  if (::fstat(file.get(), &info) != 0) return ReadError(path, "stat", errno);
  if (!S_ISREG(info.st_mode))
    return absl::InvalidArgumentError(absl::StrCat(path, ": not a regular file"));
  return InputFile(path, std::move(file), static_cast<uint64_t>(info.st_size));
}

absl::Status InputFile::ReadAt(uint64_t offset, std::span<std::byte> bytes) const {
  while (!bytes.empty()) {
    const ssize_t got =
        ::pread(file_.get(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return ReadError(path_, "read", errno);
    if (got == 0) {
      return absl::DataLossError(absl::StrCat(path_, ": ends at byte ", offset, ", expected ",
                                              bytes.size(), " bytes more"));
    }
    offset += static_cast<uint64_t>(got);
    bytes = bytes.subspan(static_cast<size_t>(got));
  }
  return absl::OkStatus();
}

}  // namespace lockstep
