// SaveRecord knows which versions of a shard were to be saved, and up to which one they are: in a
// checkpoint that exists. That the shard's own file is written is not enough.
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
  struct Save {
    std::string folder;  // of the checkpoint
    GlobalStep version;
  };

  // The shard is to save this version. Of several the newest counts.
  void NoteAsked(std::string folder, GlobalStep version) {
    if (asked_.has_value() && version < asked_->version) return;
    asked_ = {std::move(folder), version};
  }
  // There is a checkpoint of this version or of a later one.
  void NoteCheckpoint(GlobalStep version) { saved_ = std::max(saved_, std::optional(version)); }

  bool IsUnsaved(GlobalStep version) const { return std::optional(version) > saved_; }
  // The newest version that the shard was asked to save, if it is not known to be saved.
  std::optional<Save> unsaved() const {
    return asked_.has_value() && IsUnsaved(asked_->version) ? asked_ : std::nullopt;
  }

 private:
  std::optional<Save> asked_;
  std::optional<GlobalStep> saved_;
};

}  // namespace lockstep::ps
