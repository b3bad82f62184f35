#include "common/fs/folder.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/fs/file_descriptor.h"
#include "common/fs/fs_error.h"
#include "common/fs/path.h"

namespace lockstep {
namespace {

constexpr mode_t kFolderMode = 0750;

struct CloseFolder {
  void operator()(DIR* folder) const { ::closedir(folder); }
};
using OpenFolder = std::unique_ptr<DIR, CloseFolder>;

// Reads all names, or returns the error number. Takes the descriptor over.
int ReadNames(FileDescriptor descriptor, std::vector<std::string>& names) {
  // fdopendir owns the descriptor only when it succeeds.
  const int copy = ::fcntl(descriptor.get(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return errno;
  OpenFolder folder(::fdopendir(copy));
  if (folder == nullptr) {
    const int error = errno;
    ::close(copy);
    return error;
  }
  errno = 0;
  while (const dirent* entry = ::readdir(folder.get())) {
    const absl::string_view name = entry->d_name;
    if (name != "." && name != "..") names.emplace_back(name);
    errno = 0;
  }
  return errno;
}

absl::Status RemoveEntry(int parent, const std::string& name, const std::string& path,
                         const PublishCheck& check) {
  LOCKSTEP_RETURN_IF_ERROR(MayPublish(check));
  if (::unlinkat(parent, name.c_str(), 0) == 0 || errno == ENOENT) return absl::OkStatus();
  // Linux says EISDIR for a folder, POSIX EPERM.
  if (errno != EISDIR && errno != EPERM) return WriteError(path, "remove", errno);
  FileDescriptor folder(
      ::openat(parent, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC));
  if (!folder.valid()) return WriteError(path, "open to remove", errno);
  const int handle = folder.get();
  std::vector<std::string> names;
  FileDescriptor listing(::fcntl(handle, F_DUPFD_CLOEXEC, 0));
  if (const int error = ReadNames(std::move(listing), names))
    return WriteError(path, "list", error);
  for (const std::string& child : names)
    LOCKSTEP_RETURN_IF_ERROR(RemoveEntry(handle, child, JoinPath(path, child), check));
  LOCKSTEP_RETURN_IF_ERROR(MayPublish(check));
  if (::unlinkat(parent, name.c_str(), AT_REMOVEDIR) != 0 && errno != ENOENT)
    return WriteError(path, "remove", errno);
  return absl::OkStatus();
}

}  // namespace

absl::Status MakeFolders(const std::string& path) {
  if (path.empty()) {
    return WithExitCode(absl::InvalidArgumentError("empty name of a folder"),
                        ExitCode::kCannotCreate);
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_there, FindFolder(path));
  if (is_there) return absl::OkStatus();
  const std::string parent = FolderOf(path);
  if (parent != path && parent != ".") LOCKSTEP_RETURN_IF_ERROR(MakeFolders(parent));
  if (::mkdir(path.c_str(), kFolderMode) == 0) {
    absl::Status synced = SyncFolder(parent);
    // Otherwise the next call would take it for durable.
    if (!synced.ok()) ::rmdir(path.c_str());
    return synced;
  }
  const int error = errno;
  if (error == EEXIST) {
    if (IsFolder(path)) return absl::OkStatus();
    return WithExitCode(
        absl::FailedPreconditionError(absl::StrCat(path, ": a file, expected a folder")),
        ExitCode::kCannotCreate);
  }
  return WriteError(path, "make the folder", error);
}

bool IsFolder(const std::string& path) {
  const absl::StatusOr<bool> found = FindFolder(path);
  return found.ok() && *found;
}

absl::StatusOr<bool> FindFolder(const std::string& path) {
  struct stat info;
  if (::stat(path.c_str(), &info) == 0) return S_ISDIR(info.st_mode);
  if (errno == ENOENT || errno == ENOTDIR) return false;
  return ReadError(path, "look for the folder", errno);
}

absl::Status SyncFolder(const std::string& path) {
  const FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return WriteError(path, "open the folder", errno);
  if (::fsync(folder.get()) != 0) return WriteError(path, "fsync the folder", errno);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> ListFolder(const std::string& path) {
  FileDescriptor folder(::open(path.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return ReadError(path, "open the folder", errno);
  std::vector<std::string> names;
  if (const int error = ReadNames(std::move(folder), names)) return ReadError(path, "list", error);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status RemoveTree(const std::string& root, absl::string_view name,
                        const PublishCheck& check) {
  if (!IsEntryName(name)) {
    return absl::InvalidArgumentError(
        absl::StrCat("'", name, "' is not the name of an entry of ", root));
  }
  const FileDescriptor folder(::open(root.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) {
    if (errno == ENOENT) return absl::OkStatus();
    return WriteError(root, "open the folder", errno);
  }
  return RemoveEntry(folder.get(), std::string(name), JoinPath(root, name), check);
}

}  // namespace lockstep
