#include "common/checkpoint/retention.h"

#include <optional>
#include <set>
#include <vector>

#include "absl/strings/match.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/folder.h"
#include "common/checkpoint/history.h"
#include "common/checkpoint/manifest.h"
#include "common/fs/folder.h"
#include "common/fs/path.h"

namespace lockstep {
namespace {

// The manifest goes first, also on the disk: a checkpoint that is half deleted does not exist, not
// even after a power failure.
absl::Status RemoveCheckpoint(const std::string& root, int64_t step, const PublishCheck& check) {
  const std::string folder = CheckpointFolder(root, step);
  LOCKSTEP_ASSIGN_OR_RETURN(const bool has_manifest, HasManifest(folder));
  if (has_manifest) {
    LOCKSTEP_RETURN_IF_ERROR(RemoveTree(folder, kManifestFile, check));
    LOCKSTEP_RETURN_IF_ERROR(SyncFolder(folder));
  }
  return RemoveTree(root, CheckpointName(step), check);
}

absl::Status RemoveUnfinished(const std::string& root, int64_t step, const PublishCheck& check) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool has_manifest, HasManifest(CheckpointFolder(root, step)));
  return has_manifest ? absl::OkStatus() : RemoveCheckpoint(root, step, check);
}

// Of the last checkpoint to keep; nullopt: there are not so many.
absl::StatusOr<std::optional<int64_t>> OldestToKeep(const std::string& root, const Manifest& newest,
                                                    int keep_last) {
  if (keep_last <= 0) return std::nullopt;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<HistoryPoint> points, ReadHistoryPoints(root));
  const std::vector<int64_t> steps = StepsUpTo(points, newest.epoch, newest.step);
  const size_t last = static_cast<size_t>(keep_last) - 1;
  return last < steps.size() ? std::optional(steps[last]) : std::nullopt;
}

}  // namespace

absl::Status RemoveOldCheckpoints(const std::string& root, const Manifest& newest, int keep_last,
                                  const PublishCheck& check) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListCheckpoints(root));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<int64_t> oldest,
                            OldestToKeep(root, newest, keep_last));
  absl::Status status;
  for (const int64_t step : steps) {
    if (step >= newest.step) continue;
    const bool is_wanted = !oldest.has_value() || step >= *oldest;
    status.Update(is_wanted ? RemoveUnfinished(root, step, check)
                            : RemoveCheckpoint(root, step, check));
  }
  LOCKSTEP_RETURN_IF_ERROR(MayPublish(check));
  status.Update(RemoveTemporaryFiles(root));
  return status;
}

absl::Status RemoveUnnamedShards(const std::string& checkpoint, const Manifest& manifest,
                                 const PublishCheck& check) {
  std::set<std::string> named;
  for (const ShardFile& shard : manifest.shards) named.insert(shard.file);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(checkpoint));
  absl::Status status;
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, kShardPrefix) || named.contains(name)) continue;
    status.Update(RemoveTree(checkpoint, name, check));
  }
  LOCKSTEP_RETURN_IF_ERROR(MayPublish(check));
  status.Update(RemoveTemporaryFiles(checkpoint));
  return status;
}

absl::Status RemoveUnfinishedSave(const std::string& root, int64_t step,
                                  const PublishCheck& check) {
  const std::string folder = CheckpointFolder(root, step);
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_begun, FindFolder(folder));
  if (!is_begun) return absl::OkStatus();
  const absl::StatusOr<Manifest> manifest = ReadManifest(folder);
  if (absl::IsNotFound(manifest.status())) return RemoveCheckpoint(root, step, check);
  LOCKSTEP_RETURN_IF_ERROR(manifest.status());
  // After a failed sync of the folder the manifest before may come back: its shards stay.
  LOCKSTEP_RETURN_IF_ERROR(SyncFolder(folder));
  return RemoveUnnamedShards(folder, *manifest, check);
}

}  // namespace lockstep
