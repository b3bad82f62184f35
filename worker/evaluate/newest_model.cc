#include "worker/evaluate/newest_model.h"

#include <utility>

#include "common/base/remedy.h"
#include "common/base/status_macros.h"
#include "common/checkpoint/checkpoint.h"
#include "common/checkpoint/folder.h"

namespace lockstep::worker {
namespace {

constexpr int kLooks = 3;

absl::StatusOr<std::string> Resolve(const std::string& path, std::vector<std::string>* warnings) {
  absl::StatusOr<std::string> folder = ResolveCheckpoint(path, warnings);
  if (folder.ok()) return folder;
  return AddRemedy(folder.status(),
                   absl::IsDataLoss(folder.status())
                       ? "use another checkpoint: --checkpoint=DIR/ckpt-STEP names one"
                       : "--checkpoint=DIR names a folder that a job wrote (its "
                         "checkpoint.folder)");
}

// A save deletes the manifest first.
bool IsGone(const std::string& checkpoint) {
  const absl::StatusOr<bool> exists = HasManifest(checkpoint);
  return exists.ok() && !*exists;
}

}  // namespace

absl::StatusOr<NewestModel> LoadNewest(const std::string& path,
                                       std::vector<std::string>* warnings) {
  for (int looks = 1;; ++looks) {
    warnings->clear();
    LOCKSTEP_ASSIGN_OR_RETURN(std::string folder, Resolve(path, warnings));
    absl::StatusOr<TrainedModel> model = TrainedModel::Load(folder);
    if (model.ok()) return NewestModel{std::move(folder), *std::move(model)};
    if (folder == path || !IsGone(folder)) return model.status();
    if (looks == kLooks) return CheckpointGoneError(folder);
  }
}

}  // namespace lockstep::worker
