#include "common/fs/input_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/fs/fs_error.h"

namespace lockstep {
namespace {

constexpr size_t kPiece = size_t{1} << 16;

const char* KindOf(mode_t mode) {
  if (S_ISDIR(mode)) return "a directory";
  if (S_ISFIFO(mode)) return "a named pipe";
  if (S_ISSOCK(mode)) return "a socket";
  return "a device";
}

absl::Status NotRegular(const std::string& path, mode_t mode) {
  return WithExitCode(absl::InvalidArgumentError(
                          absl::StrCat(path, ": expected a regular file, got ", KindOf(mode))),
                      ExitCode::kInputNotFound);
}

// `info` gets what it is.
absl::StatusOr<FileDescriptor> OpenRegular(const std::string& path, struct stat* info) {
  // A pipe that nobody writes to would block the open.
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY));
  if (!file.valid()) {
    const int error = errno;
    // Of a socket the system says no more than that.
    if (error == ENXIO && ::stat(path.c_str(), info) == 0 && !S_ISREG(info->st_mode)) {
      return NotRegular(path, info->st_mode);
    }
    return ReadError(path, "open", error);
  }
  if (::fstat(file.get(), info) != 0) return ReadError(path, "stat", errno);
  if (!S_ISREG(info->st_mode)) return NotRegular(path, info->st_mode);
  return file;
}

absl::Status TooLarge(const std::string& path, size_t max_bytes) {
  return absl::InvalidArgumentError(
      absl::StrCat(path, ": larger than the ", max_bytes, " bytes that are allowed here"));
}

}  // namespace

absl::StatusOr<std::string> ReadFile(const std::string& path, size_t max_bytes) {
  struct stat info;
  LOCKSTEP_ASSIGN_OR_RETURN(const FileDescriptor file, OpenRegular(path, &info));
  if (static_cast<uint64_t>(info.st_size) > max_bytes) return TooLarge(path, max_bytes);
  std::string contents;
  // One byte more shows the end of the file without growing the buffer. Files of /proc say 0.
  contents.reserve(static_cast<size_t>(info.st_size) + 1);
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
  struct stat info;
  LOCKSTEP_ASSIGN_OR_RETURN(FileDescriptor file, OpenRegular(path, &info));
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
