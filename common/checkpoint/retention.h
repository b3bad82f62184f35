// What leaves a checkpoint root: old checkpoints, and what unfinished saves have left. `check` is
// asked before each deletion (PublishCheck). What cannot be deleted stays, the rest goes: the first
// error is returned.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/checkpoint/checkpoint.h"
#include "common/fs/atomic_file.h"

namespace lockstep {

// After `newest` is complete, what it makes unnecessary (CommitCheckpoint says what).
absl::Status RemoveOldCheckpoints(const std::string& root, const Manifest& newest, int keep_last,
                                  const PublishCheck& check);

// Shard files in a checkpoint's folder that its manifest does not name, and temporary files.
absl::Status RemoveUnnamedShards(const std::string& checkpoint, const Manifest& manifest,
                                 const PublishCheck& check);

}  // namespace lockstep
