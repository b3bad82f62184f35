#include "common/checkpoint/folder.h"

#include <algorithm>
#include <filesystem>
#include <functional>
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
absl::Status RemoveCheckpoint(const std::string& root, int64_t step) {
  const std::string folder = CheckpointFolder(root, step);
  if (IsComplete(folder)) {
    LOCKSTEP_RETURN_IF_ERROR(RemoveTree(folder, kManifestFile));
    LOCKSTEP_RETURN_IF_ERROR(SyncFolder(folder));
  }
  return RemoveTree(root, CheckpointName(step));
}

absl::Status RemoveOldCheckpoints(const std::string& root, int64_t newest, int keep_last) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListCheckpoints(root));
  int kept = 0;
  for (const int64_t step : steps) {
    if (step > newest) continue;
    if (step == newest || IsComplete(CheckpointFolder(root, step))) {
      if (keep_last <= 0 || kept < keep_last) {
        ++kept;
        continue;
      }
    }
    LOCKSTEP_RETURN_IF_ERROR(RemoveCheckpoint(root, step));
  }
  return RemoveTemporaryFiles(root);
}

// Left by a save of the same step that another number of ps began.
absl::Status RemoveStrangers(const std::string& folder, const Manifest& manifest) {
  std::set<std::string> named;
  for (const ShardFile& shard : manifest.shards) named.insert(shard.file);
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<std::string> names, ListFolder(folder));
  for (const std::string& name : names) {
    if (absl::StartsWith(name, kShardPrefix) && !named.contains(name))
      LOCKSTEP_RETURN_IF_ERROR(RemoveTree(folder, name));
  }
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

// What a commit that sets LATEST back says; empty otherwise.
std::string DescribeStepBack(const std::string& root, int64_t step) {
  const absl::StatusOr<std::string> latest = ReadFile(JoinPath(root, kLatestFile), kLongestLatest);
  if (!latest.ok()) return "";
  const auto before = ParseCheckpointName(absl::StripAsciiWhitespace(*latest));
  if (!before.has_value() || *before <= step) return "";
  return absl::StrCat(JoinPath(root, kLatestFile), " goes back from ", CheckpointName(*before),
                      " to ", CheckpointName(step), ": this run began before step ", *before);
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

std::string CheckpointFolder(const std::string& root, int64_t step) {
  return JoinPath(root, CheckpointName(step));
}

absl::StatusOr<ShardFile> WriteShard(const std::string& folder, uint32_t shard, uint32_t num_shards,
                                     const std::vector<NamedTensor>& tensors) {
  LOCKSTEP_RETURN_IF_ERROR(MakeFolders(folder));
  return WriteSafetensors(JoinPath(folder, ShardFileName(folder, shard, num_shards)), tensors);
}

absl::StatusOr<std::string> CommitCheckpoint(const std::string& root, const Manifest& manifest,
                                             int keep_last, std::vector<std::string>* warnings) {
  std::string folder = CheckpointFolder(root, manifest.step);
  LOCKSTEP_RETURN_IF_ERROR(CheckShardsAreThere(folder, manifest));
  LOCKSTEP_RETURN_IF_ERROR(
      WriteFileAtomically(JoinPath(folder, kManifestFile), EncodeManifest(manifest)));
  const std::string step_back = DescribeStepBack(root, manifest.step);
  LOCKSTEP_RETURN_IF_ERROR(WriteFileAtomically(JoinPath(root, kLatestFile),
                                               absl::StrCat(CheckpointName(manifest.step), "\n")));
  if (!step_back.empty() && warnings != nullptr) warnings->push_back(step_back);
  for (const absl::Status& status :
       {RemoveStrangers(folder, manifest), RemoveOldCheckpoints(root, manifest.step, keep_last)}) {
    if (!status.ok() && warnings != nullptr) warnings->emplace_back(status.message());
  }
  return folder;
}

}  // namespace lockstep
