// SaveRecord knows which version a shard was last told to save, and up to which version there are
// checkpoints. That the shard's own file is written is not enough.
#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "common/base/ids.h"

namespace lockstep::ps {

// Not thread-safe.
class SaveRecord {
 public:
  // The shard is to save this version, in the folder of its checkpoint. Of several the newest
  // counts.
  void NoteRequested(std::string folder, GlobalStep version) {
    if (std::optional(version) < requested_) return;
    folder_ = std::move(folder);
    requested_ = version;
  }
  // There is a checkpoint of this version or of a later one.
  void NoteCheckpoint(GlobalStep version) { saved_ = std::max(saved_, std::optional(version)); }

  // Of the last request; empty: there was none.
  const std::string& folder() const { return folder_; }
  const std::optional<GlobalStep>& requested() const { return requested_; }
  // Nothing precedes every version.
  const std::optional<GlobalStep>& saved() const { return saved_; }

 private:
  std::string folder_;
  std::optional<GlobalStep> requested_;
  std::optional<GlobalStep> saved_;
};

}  // namespace lockstep::ps
