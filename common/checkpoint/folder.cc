#include "common/checkpoint/folder.h"

#include <algorithm>
#include <functional>
#include <optional>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/annotate.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/history.h"
#include "common/checkpoint/latest.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/retention.h"
#include "common/checkpoint/safetensors_writer.h"
#include "common/fs/atomic_file.h"
#include "common/fs/folder.h"
#include "common/fs/input_file.h"
#include "common/fs/path.h"

namespace lockstep {
namespace {

constexpr char kPrefix[] = "ckpt-";
constexpr char kShardSuffix[] = ".safetensors";

absl::Status CheckShardsAreThere(const std::string& folder, const Manifest& manifest) {
  for (const ShardFile& shard : manifest.shards) {
    const auto file = InputFile::Open(JoinPath(folder, shard.file));
    if (!file.ok()) {
      return absl::FailedPreconditionError(absl::StrCat(
          file.status().message(),
          ". Remedy: the checkpoint folder must be on storage that every ps and the chief see"));
    }
    if (file->size() != shard.bytes) {
      return absl::FailedPreconditionError(
          absl::StrCat(file->path(), ": ", file->size(), " bytes, its ps wrote ", shard.bytes));
    }
  }
  return absl::OkStatus();
}

// The name of a shard's file: the first that is free. While the folder has a manifest, the shards
// that it names stay until the next manifest replaces it. Without one a chief whose command is over
// may still delete the file that has the name.
absl::StatusOr<std::string> ShardFileName(const std::string& folder, uint32_t shard,
                                          uint32_t num_shards) {
  const std::string stem = absl::StrCat(kShardPrefix, shard, "-of-", num_shards);
  std::string name = stem + kShardSuffix;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> taken, ListFolder(folder));
  for (int again = 2; std::ranges::count(taken, name) > 0; ++again) {
    name = absl::StrCat(stem, ".", again, kShardSuffix);
  }
  return name;
}

// LATEST never goes back within a history, and never to an earlier one. Where a new history sets it
// back, `step_back` says so.
absl::Status CheckLatest(const std::string& root, const Manifest& next, std::string* step_back) {
  const absl::StatusOr<int64_t> before = ReadLatest(root);
  const bool names_nothing =
      absl::IsNotFound(before.status()) || absl::IsInvalidArgument(before.status());
  if (names_nothing) return absl::OkStatus();
  // An unreadable file may name a later one.
  LOCKSTEP_RETURN_IF_ERROR(before.status());
  const absl::StatusOr<Manifest> manifest = ReadManifest(CheckpointFolder(root, *before));
  const auto differs = [&](absl::string_view what) {
    return absl::StrCat(JoinPath(root, kLatestFile), what, CheckpointName(*before), " to ",
                        CheckpointName(next.step));
  };
  if (manifest.ok() && manifest->epoch > next.epoch) {
    return absl::AbortedError(absl::StrCat(differs(" does not go from "), " of epoch ", next.epoch,
                                           ": it names epoch ", manifest->epoch));
  }
  if (*before <= next.step) return absl::OkStatus();
  const bool is_known =
      manifest.ok() || absl::IsNotFound(manifest.status()) || absl::IsDataLoss(manifest.status());
  if (!is_known) return manifest.status();
  if (manifest.ok() && manifest->epoch == next.epoch) {
    return absl::AlreadyExistsError(
        absl::StrCat(differs(" does not go back from "), ": both are of epoch ", next.epoch));
  }
  *step_back = absl::StrCat(differs(" goes back from "), ": this run began before step ", *before);
  return absl::OkStatus();
}

absl::Status Publish(const std::string& root, const std::string& folder, const Manifest& manifest,
                     const PublishCheck& check) {
  LOCKSTEP_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(folder, kManifestFile), EncodeManifest(manifest), check));
  return WriteFileAtomically(JoinPath(root, kLatestFile),
                             absl::StrCat(CheckpointName(manifest.step), "\n"), check);
}

// After Publish has failed, which made the manifest: the job says that there is no checkpoint of
// this step. One that LATEST names, or may name, stays.
absl::Status WithdrawManifest(const std::string& root, int64_t step, const PublishCheck& check) {
  const absl::StatusOr<int64_t> latest = ReadLatest(root);
  const bool may_name_it = latest.ok() ? *latest == step : !absl::IsNotFound(latest.status());
  const std::string folder = CheckpointFolder(root, step);
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_there, HasManifest(folder));
  return is_there && !may_name_it ? RemoveTree(folder, kManifestFile, check) : absl::OkStatus();
}

// FAILED_PRECONDITION: this build does not know the format.
bool MayBeReadLater(const absl::Status& status) {
  return !absl::IsNotFound(status) && !absl::IsDataLoss(status) &&
         !absl::IsFailedPrecondition(status);
}

}  // namespace

std::string CheckpointName(int64_t step) { return absl::StrCat(kPrefix, step); }

std::optional<int64_t> ParseCheckpointName(absl::string_view name) {
  int64_t step = 0;
  absl::string_view digits = name;
  if (!absl::ConsumePrefix(&digits, kPrefix) || !absl::SimpleAtoi(digits, &step) || step < 0 ||
      CheckpointName(step) != name)
    return std::nullopt;
  return step;
}

absl::StatusOr<std::vector<int64_t>> ListCheckpoints(const std::string& root) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(root));
  std::vector<int64_t> steps;
  for (const std::string& name : names) {
    const auto step = ParseCheckpointName(name);
    if (!step.has_value()) continue;
    // One of which the disk does not say what it is must be told of, and not be forgotten.
    const absl::StatusOr<bool> is_folder = FindFolder(JoinPath(root, name));
    if (!is_folder.ok() || *is_folder) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

absl::StatusOr<bool> HasManifest(const std::string& checkpoint) {
  const absl::Status opened = InputFile::Open(JoinPath(checkpoint, kManifestFile)).status();
  if (opened.ok()) return true;
  // A folder in its place is none.
  if (absl::IsNotFound(opened) || absl::IsInvalidArgument(opened)) return false;
  return opened;
}

absl::StatusOr<std::vector<HistoryPoint>> ReadHistoryPoints(const std::string& root,
                                                            absl::Status* unread) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListCheckpoints(root));
  std::vector<HistoryPoint> points;
  for (const int64_t step : steps) {
    const absl::StatusOr<Manifest> manifest = ReadManifest(CheckpointFolder(root, step));
    if (!manifest.ok()) {
      if (unread != nullptr && MayBeReadLater(manifest.status())) unread->Update(manifest.status());
      continue;
    }
    points.push_back({step, manifest->epoch, manifest->origin, manifest->IsFinite()});
  }
  return points;
}

absl::StatusOr<std::vector<HistoryPoint>> ReadAllHistoryPoints(const std::string& root) {
  absl::Status unread;
  LOCKSTEP_ASSIGN_OR_RETURN(std::vector<HistoryPoint> points, ReadHistoryPoints(root, &unread));
  LOCKSTEP_RETURN_IF_ERROR(unread);
  return points;
}

std::string CheckpointFolder(const std::string& root, int64_t step) {
  return JoinPath(root, CheckpointName(step));
}

bool HasCheckpointSince(const std::string& checkpoint, uint64_t epoch, int64_t step) {
  const std::string root = FolderOf(checkpoint);
  const absl::StatusOr<int64_t> latest = ReadLatest(root);
  if (!latest.ok()) return false;
  const absl::StatusOr<Manifest> manifest = ReadManifest(CheckpointFolder(root, *latest));
  if (!manifest.ok()) return false;
  return manifest->epoch > epoch || (manifest->epoch == epoch && *latest >= step);
}

absl::StatusOr<ShardFile> WriteShard(const std::string& folder, uint32_t shard, uint32_t num_shards,
                                     const std::vector<NamedTensor>& tensors,
                                     const PublishCheck& check) {
  LOCKSTEP_RETURN_IF_ERROR(MakeFolders(folder));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::string name, ShardFileName(folder, shard, num_shards));
  return WriteSafetensors(JoinPath(folder, name), tensors, check);
}

absl::StatusOr<std::string> CommitCheckpoint(const std::string& root, const Manifest& manifest,
                                             int keep_last, std::vector<std::string>* warnings,
                                             const PublishCheck& check) {
  std::string folder = CheckpointFolder(root, manifest.step);
  std::string step_back;
  LOCKSTEP_RETURN_IF_ERROR(CheckLatest(root, manifest, &step_back));
  LOCKSTEP_RETURN_IF_ERROR(CheckShardsAreThere(folder, manifest));
  LOCKSTEP_ASSIGN_OR_RETURN(const bool had_manifest, HasManifest(folder));
  if (absl::Status published = Publish(root, folder, manifest, check); !published.ok()) {
    if (had_manifest) return published;
    const absl::Status withdrawn = WithdrawManifest(root, manifest.step, check);
    // Of a fenced chief the checkpoint may stay: the folder is its successor's.
    if (withdrawn.ok() || absl::IsAborted(withdrawn)) return published;
    return WithMessage(published, absl::StrCat(published.message(), "; ", folder,
                                               " stays all the same: ", withdrawn.message()));
  }
  if (!step_back.empty() && warnings != nullptr) warnings->push_back(step_back);
  for (const absl::Status& status : {RemoveUnnamedShards(folder, manifest, check),
                                     RemoveOldCheckpoints(root, manifest, keep_last, check)}) {
    if (!status.ok() && warnings != nullptr) warnings->emplace_back(status.message());
  }
  return folder;
}

}  // namespace lockstep
