#include "common/checkpoint/folder.h"

#include <algorithm>
#include <filesystem>
#include <functional>
#include <optional>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/history.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/safetensors_writer.h"
#include "common/fs/atomic_file.h"
#include "common/fs/folder.h"
#include "common/fs/input_file.h"
#include "common/fs/path.h"

namespace lockstep {
namespace {

constexpr char kPrefix[] = "ckpt-";
constexpr char kShardPrefix[] = "shard-";
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

bool IsComplete(const std::string& folder) {
  return InputFile::Open(JoinPath(folder, kManifestFile)).ok();
}

// The manifest goes first, also on the disk: a checkpoint that is half deleted does not exist, not
// even after a power failure.
absl::Status RemoveCheckpoint(const std::string& root, int64_t step, const PublishCheck& check) {
  const std::string folder = CheckpointFolder(root, step);
  LOCKSTEP_RETURN_IF_ERROR(MayPublish(check));
  if (IsComplete(folder)) {
    LOCKSTEP_RETURN_IF_ERROR(RemoveTree(folder, kManifestFile));
    LOCKSTEP_RETURN_IF_ERROR(SyncFolder(folder));
    LOCKSTEP_RETURN_IF_ERROR(MayPublish(check));
  }
  return RemoveTree(root, CheckpointName(step));
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

absl::Status RemoveOldCheckpoints(const std::string& root, const Manifest& newest, int keep_last,
                                  const PublishCheck& check) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListCheckpoints(root));
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<int64_t> oldest,
                            OldestToKeep(root, newest, keep_last));
  for (const int64_t step : steps) {
    const bool is_wanted = !oldest.has_value() || step >= *oldest;
    if (step >= newest.step || (is_wanted && IsComplete(CheckpointFolder(root, step)))) continue;
    LOCKSTEP_RETURN_IF_ERROR(RemoveCheckpoint(root, step, check));
  }
  LOCKSTEP_RETURN_IF_ERROR(MayPublish(check));
  return RemoveTemporaryFiles(root);
}

// Left by a save of the same step that another number of ps began.
absl::Status RemoveStrangers(const std::string& folder, const Manifest& manifest,
                             const PublishCheck& check) {
  std::set<std::string> named;
  for (const ShardFile& shard : manifest.shards) named.insert(shard.file);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  for (const std::string& name : names) {
    if (!absl::StartsWith(name, kShardPrefix) || named.contains(name)) continue;
    LOCKSTEP_RETURN_IF_ERROR(MayPublish(check));
    LOCKSTEP_RETURN_IF_ERROR(RemoveTree(folder, name));
  }
  LOCKSTEP_RETURN_IF_ERROR(MayPublish(check));
  return RemoveTemporaryFiles(folder);
}

// The name of a shard's file. While the folder has a manifest, the shards that it names stay until
// the next manifest replaces it: the new file takes the first name that is free.
std::string ShardFileName(const std::string& folder, uint32_t shard, uint32_t num_shards) {
  const std::string stem = absl::StrCat(kShardPrefix, shard, "-of-", num_shards);
  std::string name = stem + kShardSuffix;
  if (!IsComplete(folder)) return name;
  std::error_code ignored;
  for (int again = 2; std::filesystem::exists(JoinPath(folder, name), ignored); ++again) {
    name = absl::StrCat(stem, ".", again, kShardSuffix);
  }
  return name;
}

// LATEST never goes back within a history, and never to an earlier one. Where a new history sets it
// back, `step_back` says so.
absl::Status CheckLatest(const std::string& root, const Manifest& next, std::string* step_back) {
  const absl::StatusOr<std::string> latest = ReadFile(JoinPath(root, kLatestFile), kLongestLatest);
  if (!latest.ok()) return absl::OkStatus();
  const auto before = ParseCheckpointName(absl::StripAsciiWhitespace(*latest));
  if (!before.has_value()) return absl::OkStatus();
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
  if (manifest.ok() && manifest->epoch == next.epoch) {
    return absl::AlreadyExistsError(
        absl::StrCat(differs(" does not go back from "), ": both are of epoch ", next.epoch));
  }
  *step_back = absl::StrCat(differs(" goes back from "), ": this run began before step ", *before);
  return absl::OkStatus();
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
    if (step.has_value() && IsFolder(JoinPath(root, name))) steps.push_back(*step);
  }
  std::sort(steps.begin(), steps.end(), std::greater<>());
  return steps;
}

absl::StatusOr<std::vector<HistoryPoint>> ReadHistoryPoints(const std::string& root) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListCheckpoints(root));
  std::vector<HistoryPoint> points;
  for (const int64_t step : steps) {
    const absl::StatusOr<Manifest> manifest = ReadManifest(CheckpointFolder(root, step));
    if (manifest.ok()) points.push_back({step, manifest->epoch, manifest->origin});
  }
  return points;
}

std::string CheckpointFolder(const std::string& root, int64_t step) {
  return JoinPath(root, CheckpointName(step));
}

absl::StatusOr<ShardFile> WriteShard(const std::string& folder, uint32_t shard, uint32_t num_shards,
                                     const std::vector<NamedTensor>& tensors,
                                     const PublishCheck& check) {
  LOCKSTEP_RETURN_IF_ERROR(MakeFolders(folder));
  return WriteSafetensors(JoinPath(folder, ShardFileName(folder, shard, num_shards)), tensors,
                          check);
}

absl::StatusOr<std::string> CommitCheckpoint(const std::string& root, const Manifest& manifest,
                                             int keep_last, std::vector<std::string>* warnings,
                                             const PublishCheck& check) {
  std::string folder = CheckpointFolder(root, manifest.step);
  std::string step_back;
  LOCKSTEP_RETURN_IF_ERROR(CheckLatest(root, manifest, &step_back));
  LOCKSTEP_RETURN_IF_ERROR(CheckShardsAreThere(folder, manifest));
  LOCKSTEP_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(folder, kManifestFile), EncodeManifest(manifest), check));
  LOCKSTEP_RETURN_IF_ERROR(WriteFileAtomically(
      JoinPath(root, kLatestFile), absl::StrCat(CheckpointName(manifest.step), "\n"), check));
  if (!step_back.empty() && warnings != nullptr) warnings->push_back(step_back);
  for (const absl::Status& status : {RemoveStrangers(folder, manifest, check),
                                     RemoveOldCheckpoints(root, manifest, keep_last, check)}) {
    if (!status.ok() && warnings != nullptr) warnings->emplace_back(status.message());
  }
  return folder;
}

}  // namespace lockstep
