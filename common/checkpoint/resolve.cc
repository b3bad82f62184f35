#include <functional>
#include <map>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/exit_code.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/folder.h"
#include "common/checkpoint/history.h"
#include "common/checkpoint/latest.h"
#include "common/checkpoint/manifest.h"
#include "common/checkpoint/owner.h"
#include "common/fs/folder.h"
#include "common/fs/fs_error.h"
#include "common/fs/input_file.h"
#include "common/fs/path.h"

namespace lockstep {
namespace {

// A save that ends between two looks deletes what the first one has listed, and leaves a newer one.
constexpr int kLooks = 3;

absl::Status VerifyCheckpoint(const std::string& folder) {
  LOCKSTEP_ASSIGN_OR_RETURN(const CheckpointReader reader, CheckpointReader::Open(folder));
  return reader.Verify();
}

// What a root holds, as far as its manifests tell.
struct Contents {
  std::vector<HistoryPoint> points;
  std::map<int64_t, absl::Status, std::greater<>> unreadable;  // by step
  std::optional<int64_t> latest;
  std::vector<std::string> warnings;  // about LATEST and the owner

  bool IsDamaged(int64_t step) const {
    const auto found = unreadable.find(step);
    // A save that was never finished is no broken checkpoint.
    return found != unreadable.end() && !absl::IsNotFound(found->second);
  }
};

// For want of descriptors or memory, which is over soon: what is skipped for it would be lost.
bool IsShortage(const absl::Status& status) {
  return absl::IsResourceExhausted(status) && IsStorageFailure(status);
}

// A LATEST that is missing says nothing; one that names nothing sensible is worth a warning.
void NoteLatest(const std::string& root, Contents* contents) {
  const absl::StatusOr<int64_t> step = ReadLatest(root);
  if (absl::IsNotFound(step.status())) return;
  if (!step.ok()) {
    contents->warnings.emplace_back(step.status().message());
    return;
  }
  contents->latest = *step;
  if (IsFolder(CheckpointFolder(root, *step))) return;
  contents->warnings.push_back(
      absl::StrCat(JoinPath(root, kLatestFile), ": ", CheckpointName(*step), " is not there"));
}

absl::StatusOr<Contents> ReadContents(const std::string& root) {
  Contents contents;
  LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, ListCheckpoints(root));
  for (const int64_t step : steps) {
    const absl::StatusOr<Manifest> manifest = ReadManifest(CheckpointFolder(root, step));
    if (manifest.ok()) {
      contents.points.push_back({step, manifest->epoch, manifest->origin});
    } else if (IsShortage(manifest.status())) {
      return manifest.status();
    } else {
      contents.unreadable.emplace(step, manifest.status());
    }
  }
  NoteLatest(root, &contents);
  return contents;
}

// Of a folder with this owner. Where it has saved nothing and its origin is damaged, that may be
// the only one of its epoch: what is beyond it is abandoned.
std::vector<int64_t> StepsOfOwner(const Contents& contents, const HistoryTip& tip) {
  std::vector<HistoryPoint> points = contents.points;
  const bool has_saved = HasSavedSince(points, tip.epoch);
  if (!has_saved && tip.origin.epoch > 0 && contents.IsDamaged(tip.origin.step)) {
    std::erase_if(points,
                  [&tip](const HistoryPoint& point) { return point.step > tip.origin.step; });
  }
  return StepsThatGoOn(points, tip);
}

// Steps to try, in this order.
absl::StatusOr<std::vector<int64_t>> Candidates(const std::string& root, Contents* contents) {
  const absl::StatusOr<std::optional<FolderOwner>> owner = ReadOwner(root);
  // Without its owner's origin an abandoned checkpoint would be taken. Damage does not pass.
  if (IsStorageFailure(owner.status())) return owner.status();
  if (!owner.ok()) contents->warnings.emplace_back(owner.status().message());
  if (owner.ok() && owner->has_value()) {
    return StepsOfOwner(*contents, {(*owner)->epoch, (*owner)->origin});
  }
  // Without an owner the damaged manifest may be the only one of its epoch: what is beyond it may
  // be abandoned.
  if (contents->latest.has_value() && contents->IsDamaged(*contents->latest)) {
    std::erase_if(contents->points,
                  [&](const HistoryPoint& point) { return point.step > *contents->latest; });
  }
  return StepsThatGoOn(contents->points, std::nullopt);
}

// Tries the newest checkpoint of the history that goes on, then those before it.
class NewestCheckpoint {
 public:
  explicit NewestCheckpoint(std::string root, Contents contents)
      : root_(std::move(root)), contents_(std::move(contents)) {}

  absl::StatusOr<std::string> Find() {
    LOCKSTEP_ASSIGN_OR_RETURN(const std::vector<int64_t> steps, Candidates(root_, &contents_));
    for (const int64_t step : steps) {
      std::string folder = CheckpointFolder(root_, step);
      absl::Status status = VerifyCheckpoint(folder);
      if (status.ok()) {
        SkipUnreadable(step);
        return folder;
      }
      if (IsShortage(status)) return status;
      // A save deletes the manifest first: other files that are missing then are no damage.
      if (const auto is_there = HasManifest(folder); is_there.ok() && !*is_there) {
        status = absl::NotFoundError(status.message());
      }
      if (absl::IsNotFound(status) && gone_.empty()) gone_ = folder;
      Skip(step, status);
    }
    SkipUnreadable(-1);
    if (problem_.ok() && !gone_.empty()) return CheckpointGoneError(gone_);
    if (problem_.ok()) {
      return absl::NotFoundError(absl::StrCat(root_, ": no complete checkpoint (looked for ",
                                              JoinPath(root_, kManifestFile), " and ",
                                              JoinPath(root_, "ckpt-<step>/manifest.json"), ")"));
    }
    const size_t others = contents_.points.size() - steps.size();
    const std::string why =
        absl::StrCat(root_, ": no checkpoint that can be used; the newest: ", problem_.message(),
                     others == 0 ? "" : "; others are there, of histories that were abandoned");
    if (!IsStorageFailure(problem_)) return absl::DataLossError(why);
    return WithExitCode(absl::Status(problem_.code(), why), ExitCodeFor(problem_));
  }

  // A checkpoint that was tried had gone, or there was none while a folder could become one.
  bool MayFindOther(const absl::Status& found) const {
    return !gone_.empty() || (absl::IsNotFound(found) && !contents_.unreadable.empty());
  }

  // A line for each that was skipped.
  std::vector<std::string> TakeWarnings() {
    std::vector<std::string> warnings = std::move(contents_.warnings);
    for (auto& [step, line] : skipped_) warnings.push_back(std::move(line));
    return warnings;
  }

 private:
  void Skip(int64_t step, const absl::Status& status) {
    const std::string folder = CheckpointFolder(root_, step);
    skipped_[step] = absl::StrCat("skipped ", folder, ": ", status.message());
    if (!absl::IsNotFound(status)) problem_.Update(status);
  }
  // Those that are newer than the one that was found.
  void SkipUnreadable(int64_t found) {
    for (const auto& [step, status] : contents_.unreadable) {
      if (step > found && (contents_.IsDamaged(step) || step == contents_.latest)) {
        Skip(step, status);
      }
    }
  }

  const std::string root_;
  Contents contents_;
  std::map<int64_t, std::string, std::greater<>> skipped_;
  absl::Status problem_;  // of the newest that is broken
  std::string gone_;      // the newest whose manifest was read, and was not there again
};

}  // namespace

absl::StatusOr<Manifest> ReadManifest(const std::string& folder) {
  const std::string path = JoinPath(folder, kManifestFile);
  const auto text = ReadFile(path, kLargestManifest);
  if (absl::IsInvalidArgument(text.status())) return absl::DataLossError(text.status().message());
  if (!text.ok()) return text.status();
  auto manifest = DecodeManifest(*text);
  if (!manifest.ok()) return Annotate(manifest.status(), path);
  return manifest;
}

absl::Status CheckpointGoneError(const std::string& folder) {
  return WithExitCode(
      absl::InternalError(absl::StrCat(folder, " was there, and is gone: another save deletes it")),
      ExitCode::kInputNotFound);
}

absl::StatusOr<std::string> ResolveCheckpoint(const std::string& path,
                                              std::vector<std::string>* warnings) {
  LOCKSTEP_ASSIGN_OR_RETURN(const bool has_folder, FindFolder(path));
  if (!has_folder) {
    return absl::NotFoundError(absl::StrCat(path, ": no such folder, expected a checkpoint (",
                                            CheckpointName(0), ", ...) or a folder of them"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(const bool is_checkpoint, HasManifest(path));
  if (is_checkpoint) {
    LOCKSTEP_RETURN_IF_ERROR(VerifyCheckpoint(path));
    return path;
  }
  for (int looks = 1;; ++looks) {
    LOCKSTEP_ASSIGN_OR_RETURN(Contents contents, ReadContents(path));
    NewestCheckpoint newest(path, std::move(contents));
    absl::StatusOr<std::string> found = newest.Find();
    if (newest.MayFindOther(found.status()) && looks < kLooks) continue;
    if (warnings != nullptr) {
      for (std::string& line : newest.TakeWarnings()) warnings->push_back(std::move(line));
    }
    return found;
  }
}

}  // namespace lockstep
