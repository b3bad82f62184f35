#include "deploy/cli/run_folder.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/base/remedy.h"
#include "common/base/status_macros.h"
#include "common/fs/absolute_path.h"
#include "common/fs/folder.h"
#include "common/fs/fs_error.h"
#include "common/fs/path.h"

namespace lockstep::deploy {
namespace {

constexpr char kLogs[] = "logs";
constexpr char kOtherFolder[] = "--run_dir=DIR names a folder in which this user may write";

}  // namespace

RunFolder::RunFolder(std::string path, FileDescriptor lock)
    : path_(std::move(path)), lock_(std::move(lock)) {}

absl::StatusOr<RunFolder> RunFolder::Claim(const std::string& path) {
  const std::string absolute = AbsolutePath(path);
  LOCKSTEP_RETURN_IF_ERROR(AddRemedy(MakeFolders(JoinPath(absolute, kLogs)), kOtherFolder));
  FileDescriptor folder(::open(absolute.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder.valid()) return WriteError(absolute, "open the folder", errno);
  if (::flock(folder.get(), LOCK_EX | LOCK_NB) != 0) {
    if (errno != EWOULDBLOCK) return WriteError(absolute, "lock the folder", errno);
    return absl::FailedPreconditionError(
        absl::StrCat(absolute,
                     ": another run writes to this folder. Remedy: wait for its end, or "
                     "choose another --run_dir"));
  }
  return RunFolder(absolute, std::move(folder));
}

absl::StatusOr<RunFolder> RunFolder::ClaimNew(const std::string& job_name) {
  const std::string base = AbsolutePath(
      absl::StrCat("runs/", IsEntryName(job_name) ? job_name : "job", "-",
                   absl::FormatTime("%Y%m%d-%H%M%S", absl::Now(), absl::LocalTimeZone())));
  LOCKSTEP_RETURN_IF_ERROR(AddRemedy(MakeFolders(FolderOf(base)), kOtherFolder));
  std::string path = base;
  // Of several launchers at once one makes it, the others go on.
  for (int again = 2; ::mkdir(path.c_str(), 0750) != 0; ++again) {
    if (errno != EEXIST) return WriteError(path, "make the folder", errno);
    path = absl::StrCat(base, "-", again);
  }
  return Claim(path);
}

absl::Status RemoveOldLogs(const std::string& run_folder) {
  const std::string logs = JoinPath(run_folder, kLogs);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(logs));
  for (const std::string& name : names) {
    const std::string path = JoinPath(logs, name);
    struct stat info;
    if (!absl::EndsWith(name, ".log") || ::lstat(path.c_str(), &info) != 0) continue;
    if (S_ISREG(info.st_mode)) LOCKSTEP_RETURN_IF_ERROR(RemoveTree(logs, name));
  }
  return absl::OkStatus();
}

}  // namespace lockstep::deploy
