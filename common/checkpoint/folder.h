// Names inside a checkpoint root.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/history.h"

namespace lockstep {

inline constexpr char kShardPrefix[] = "shard-";

// "ckpt-<step>".
std::string CheckpointName(int64_t step);

// The step in such a name; nullopt for any other name ("ckpt-007" too: a step has one name).
std::optional<int64_t> ParseCheckpointName(absl::string_view name);

// Whether the checkpoint exists. An error, as ReadError says, where the disk does not tell: what
// may be a checkpoint must be neither deleted nor overwritten.
absl::StatusOr<bool> HasManifest(const std::string& checkpoint);

// Steps that have a folder in `root`, complete or not, the highest first.
absl::StatusOr<std::vector<int64_t>> ListCheckpoints(const std::string& root);

// Of the checkpoints in `root` whose manifests can be read. A manifest that is missing or damaged
// is none; the first error of one that the disk does not show goes to `unread`, which may be null.
absl::StatusOr<std::vector<HistoryPoint>> ReadHistoryPoints(const std::string& root,
                                                            absl::Status* unread = nullptr);
// The same, with that error in place of the points.
absl::StatusOr<std::vector<HistoryPoint>> ReadAllHistoryPoints(const std::string& root);

}  // namespace lockstep
