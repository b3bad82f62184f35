#include "common/fs/file_lock.h"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "common/fs/fs_error.h"

namespace lockstep {
namespace {

constexpr mode_t kLockMode = 0640;
constexpr size_t kLongestHolder = 256;

std::string ReadHolder(int file) {
  char text[kLongestHolder];
  const ssize_t bytes = ::pread(file, text, sizeof text, 0);
  const absl::string_view content(text, bytes > 0 ? static_cast<size_t>(bytes) : 0);
  const std::string holder = absl::CEscape(absl::StripAsciiWhitespace(content));
  return holder.empty() ? "another process" : holder;
}

// Best effort: on a full disk the lock holds without it.
void WriteHolder(const FileDescriptor& file, absl::string_view holder) {
  const std::string line = absl::StrCat(holder, "\n");
  if (::ftruncate(file.get(), 0) != 0) return;
  static_cast<void>(file.Write(std::as_bytes(std::span(line.data(), line.size()))));
}

}  // namespace

absl::StatusOr<FileLock> FileLock::TryAcquire(const std::string& path, absl::string_view holder) {
  FileDescriptor file(
      ::open(path.c_str(), O_RDWR | O_CREAT | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, kLockMode));
  if (!file.valid()) return WriteError(path, "open", errno);
  if (::flock(file.get(), LOCK_EX | LOCK_NB) != 0) {
    const int error = errno;
    if (error != EWOULDBLOCK) return WriteError(path, "lock", error);
    return absl::AlreadyExistsError(absl::StrCat(path, ": locked by ", ReadHolder(file.get())));
  }
  WriteHolder(file, holder);
  return FileLock(std::move(file));
}

}  // namespace lockstep
