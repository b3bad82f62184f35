#include "common/security/secret_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <span>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "common/base/remedy.h"
#include "common/fs/file_descriptor.h"
#include "common/fs/fs_error.h"
#include "common/fs/input_file.h"

namespace lockstep::security {
namespace {

// A Secret that Kubernetes mounts belongs to root and a group: there its group may read.
constexpr mode_t kForbidden = S_IWGRP | S_IRWXO;

}  // namespace

absl::StatusOr<std::string> ReadSecret(const std::string& path, size_t max_bytes) {
  struct stat info;
  if (::stat(path.c_str(), &info) != 0) {
    return AddRemedy(ReadError(path, "open the file", errno),
                     "name a file that exists and that this user may read");
  }
  const bool is_ours = info.st_uid == ::geteuid();
  const mode_t forbidden = is_ours ? (S_IRWXG | S_IRWXO) : kForbidden;
  if ((info.st_mode & forbidden) != 0) {
    return absl::PermissionDeniedError(
        absl::StrCat(path, ": other users may use this secret: its mode is ",
                     absl::StrFormat("%04o", info.st_mode & 07777), ". Remedy: chmod 600 ", path));
  }
  return ReadFile(path, max_bytes);
}

absl::Status WriteSecret(const std::string& path, absl::string_view text) {
  const FileDescriptor file(
      ::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid() && errno == EEXIST) {
    return AddRemedy(WriteError(path, "make the file", EEXIST),
                     "choose another name, or remove the file if nobody uses its secret");
  }
  if (!file.valid()) {
    return AddRemedy(WriteError(path, "make the file", errno),
                     "name a file in a folder in which this user may write");
  }
  int error = file.Write(std::as_bytes(std::span(text.data(), text.size())));
  if (error == 0 && ::fsync(file.get()) != 0) error = errno;
  if (error == 0) return absl::OkStatus();
  ::unlink(path.c_str());  // no secret, and the next one may have the name
  return WriteError(path, "write the file", error);
}

}  // namespace lockstep::security
