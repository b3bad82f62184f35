#include "common/checkpoint/retention.h"

#include <filesystem>
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

bool IsLink(const std::string& path) {
  std::error_code error;
  return std::filesystem::is_symlink(path, error);
}

// The manifest goes first, also on the disk: a checkpoint that is half deleted does not exist, not
// even after a power failure. A link to one elsewhere goes alone.
absl::Status RemoveCheckpoint(const std::string& root, int64_t step, const PublishCheck& check) {
  const std::string folder = CheckpointFolder(root, step);
  if (!IsLink(folder)) {
    LOCKSTEP_RETURN_IF_ERROR(RemoveTree(folder, kManifestFile, check));
    LOCKSTEP_RETURN_IF_ERROR(SyncFolder(folder));
  }
  return RemoveTree(root, CheckpointName(step), check);
}

// What a save that did not end leaves. Without a manifest the folder may as well be another
// program's: it goes only if it held nothing else.
absl::Status RemoveUnfinished(const std::string& root, int64_t step, const PublishCheck& check) {
  const std::string folder = CheckpointFolder(root, step);
  if (IsLink(folder)) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  for (const std::string& name : names) {
    if (absl::StartsWith(name, kShardPrefix)) {
      LOCKSTEP_RETURN_IF_ERROR(RemoveTree(folder, name, check));
    }
  }
  LOCKSTEP_RETURN_IF_ERROR(RemoveTemporaryFiles(folder, check));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> rest, ListFolder(folder));
  return rest.empty() ? RemoveTree(root, CheckpointName(step), check) : absl::OkStatus();
}

absl::Status RemoveBefore(const std::string& root, int64_t step, bool is_wanted,
                          const PublishCheck& check) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool has_manifest, HasManifest(CheckpointFolder(root, step)));
  if (!has_manifest) return RemoveUnfinished(root, step, check);
  return is_wanted ? absl::OkStatus() : RemoveCheckpoint(root, step, check);
}

// Steps whose checkpoints stay.
struct Kept {
  std::optional<int64_t> oldest;  // of the last `keep_last`; nullopt: there are not so many
  std::optional<int64_t> finite;  // FindFinite

  bool Has(int64_t step) const { return !oldest.has_value() || step >= *oldest || step == finite; }
};

absl::StatusOr<Kept> ChooseKept(const std::string& root, const Manifest& newest, int keep_last) {
  if (keep_last <= 0) return Kept();
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<HistoryPoint> points, ReadAllHistoryPoints(root));
  const std::vector<int64_t> steps = StepsUpTo(points, newest.epoch, newest.step);
  const size_t last = static_cast<size_t>(keep_last) - 1;
  return Kept{.oldest = last < steps.size() ? std::optional(steps[last]) : std::nullopt,
              .finite = NewestFinite(points, newest.epoch, newest.step)};
}

}  // namespace

absl::StatusOr<std::optional<int64_t>> FindFinite(const std::string& root, const Manifest& newest) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<HistoryPoint> points, ReadAllHistoryPoints(root));
  return NewestFinite(points, newest.epoch, newest.step);
}

absl::Status RemoveOldCheckpoints(const std::string& root, const Manifest& newest, int keep_last,
                                  const PublishCheck& check) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListCheckpoints(root));
  const absl::StatusOr<Kept> kept = ChooseKept(root, newest, keep_last);
  absl::Status status = kept.status();
  for (const int64_t step : steps) {
    if (!kept.ok() || step >= newest.step) continue;
    status.Update(RemoveBefore(root, step, kept->Has(step), check));
  }
  status.Update(RemoveTemporaryFiles(root, check));
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
  status.Update(RemoveTemporaryFiles(checkpoint, check));
  return status;
}

absl::Status RemoveUnfinishedSave(const std::string& root, int64_t step,
                                  const PublishCheck& check) {
  const std::string folder = CheckpointFolder(root, step);
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_begun, FindFolder(folder));
  if (!is_begun) return absl::OkStatus();
  // After a failed sync of the folder, or without one, the manifest before may come back: its
  // shards stay.
  LOCKSTEP_RETURN_IF_ERROR(SyncFolder(folder));
  const absl::StatusOr<Manifest> manifest = ReadManifest(folder);
  if (absl::IsNotFound(manifest.status())) return RemoveUnfinished(root, step, check);
  LOCKSTEP_RETURN_IF_ERROR(manifest.status());
  return RemoveUnnamedShards(folder, *manifest, check);
}

}  // namespace lockstep
