// Deletes old checkpoints and the remains of unfinished saves from a checkpoint root. `check` is
// called before each deletion (PublishCheck). If a deletion fails, the others are still made, and
// the first error is returned.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "common/checkpoint/checkpoint.h"
#include "common/fs/atomic_file.h"

namespace lockstep {

// Call it when `newest` is complete. Deletes the checkpoints that are no longer needed, and other
// remains, as CommitCheckpoint says.
absl::Status RemoveOldCheckpoints(const std::string& root, const Manifest& newest, int keep_last,
                                  const PublishCheck& check);

// Deletes temporary files in a checkpoint's folder, and shard files not named by its manifest.
absl::Status RemoveUnnamedShards(const std::string& checkpoint, const Manifest& manifest,
                                 const PublishCheck& check);

}  // namespace lockstep
