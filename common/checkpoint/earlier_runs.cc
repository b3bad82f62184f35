#include "common/checkpoint/earlier_runs.h"

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <optional>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/remedy.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/folder.h"
#include "common/checkpoint/latest.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/owner.h"
#include "common/fs/folder.h"
#include "common/fs/fs_error.h"
#include "common/fs/path.h"

namespace lockstep {
namespace {

absl::Status Move(const std::string& root, const std::string& name, const std::string& to,
                  const PublishCheck& check) {
  const std::string from = JoinPath(root, name);
  LOCKSTEP_RETURN_IF_ERROR(MayPublish(check));
  if (std::rename(from.c_str(), JoinPath(to, name).c_str()) == 0) return absl::OkStatus();
  const int error = errno;
  if (error == ENOENT) return absl::OkStatus();
  return WriteError(from, absl::StrCat("move to ", to), error);
}

// One that does not exist yet.
absl::StatusOr<std::string> MakeNewFolder(const std::string& root) {
  std::string path;
  int number = 1;
  do path = JoinPath(root, absl::StrCat("earlier-", number++));
  while (IsFolder(path));
  LOCKSTEP_RETURN_IF_ERROR(MakeFolders(path));
  return path;
}

// A manifest that is missing or damaged makes no checkpoint. Any other one may be read later, by
// this build or a newer one, and is of some epoch.
bool MayHaveEpoch(const absl::Status& unread) {
  return !absl::IsNotFound(unread) && !absl::IsDataLoss(unread);
}

absl::Status UnknownEpoch(const std::string& root, int64_t step, const absl::Status& unread) {
  return SetRemedy(
      Annotate(unread, absl::StrCat(root, " has no ", kOwnerFile,
                                    ", so that each manifest there must tell its epoch")),
      absl::StrCat(absl::IsFailedPrecondition(unread) ? "use the build that has written it"
                                                      : "start again once it can be read",
                   ", or move ", CheckpointName(step), " out of ", root));
}

}  // namespace

absl::StatusOr<std::string> FindCheckpoint(const std::string& root) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool has_folder, FindFolder(root));
  if (!has_folder) return std::string();
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<int64_t> steps, ListCheckpoints(root));
  if (const absl::StatusOr<int64_t> latest = ReadLatest(root); latest.ok()) {
    steps.insert(steps.begin(), *latest);
  }
  for (const int64_t step : steps) {
    std::string folder = CheckpointFolder(root, step);
    LOCKSTEP_ASSIGN_OR_RETURN(const bool exists, HasManifest(folder));
    if (exists) return folder;
  }
  return std::string();
}

absl::StatusOr<std::string> SetAsideCheckpoints(const std::string& root,
                                                const PublishCheck& check) {
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<int64_t> steps, ListCheckpoints(root));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string aside, MakeNewFolder(root));
  if (const absl::StatusOr<int64_t> latest = ReadLatest(root); latest.ok()) {
    if (std::erase(steps, *latest) > 0) steps.insert(steps.begin(), *latest);
  }
  for (auto step = steps.rbegin(); step != steps.rend(); ++step) {
    LOCKSTEP_RETURN_IF_ERROR(Move(root, CheckpointName(*step), aside, check));
  }
  LOCKSTEP_RETURN_IF_ERROR(Move(root, kLatestFile, aside, check));
  LOCKSTEP_RETURN_IF_ERROR(SyncFolder(aside));
  LOCKSTEP_RETURN_IF_ERROR(SyncFolder(root));
  return aside;
}

absl::StatusOr<uint64_t> HighestEpoch(const std::string& root) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool has_folder, FindFolder(root));
  if (!has_folder) return uint64_t{0};
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<FolderOwner> owner, ReadOwner(root));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListCheckpoints(root));
  uint64_t highest = owner.has_value() ? owner->epoch : 0;
  for (const int64_t step : steps) {
    const absl::StatusOr<Manifest> manifest = ReadManifest(CheckpointFolder(root, step));
    if (manifest.ok()) {
      highest = std::max(highest, manifest->epoch);
    } else if (!owner.has_value() && MayHaveEpoch(manifest.status())) {
      return UnknownEpoch(root, step, manifest.status());
    }
  }
  return highest;
}

}  // namespace lockstep
