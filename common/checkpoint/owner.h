// The owner of a checkpoint folder: the file OWNER.json, written by each chief that takes command.
// It is read again right before each rename and each deletion there.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "common/checkpoint/origin.h"
#include "common/fs/atomic_file.h"

namespace lockstep {

inline constexpr char kOwnerFile[] = "OWNER.json";
inline constexpr size_t kLargestOwner = 32768;  // bytes; a path may be most of it

struct FolderOwner {
  uint64_t job = 0;
  uint64_t epoch = 0;
  uint64_t term = 0;
  uint64_t chief = 0;  // its incarnation
  std::string host;
  uint32_t pid = 0;
  CheckpointOrigin origin;  // of the epoch
  // The checkpoint of another folder that the epoch was restored from; empty: there is none.
  std::string source;
  // The epoch began with the initial values, and the folder held checkpoints of earlier runs. Until
  // they are set aside they look like its history.
  bool is_fresh = false;

  bool operator==(const FolderOwner&) const = default;
};

std::string EncodeOwner(const FolderOwner& owner);
// DATA_LOSS says what is wrong, without the file.
absl::StatusOr<FolderOwner> DecodeOwner(absl::string_view json);

// nullopt: nobody owns `root`, or there is no such folder. DATA_LOSS names the file and the remedy.
absl::StatusOr<std::optional<FolderOwner>> ReadOwner(const std::string& root);
absl::Status WriteOwner(const std::string& root, const FolderOwner& owner,
                        const PublishCheck& check);

// Of `root`: the owner's source, as long as the owner's epoch has no checkpoint of its own; empty
// where that one goes on from `root` or from the initial values. Errors as ReadOwner and ReadError
// say; also where a manifest that the disk does not show may be of the owner's epoch.
absl::StatusOr<std::string> FindSource(const std::string& root);

// "job 1f (epoch 2, term 3; its chief is process 41 on host a)".
std::string Describe(const FolderOwner& owner);

// Whether a ps may write into `checkpoint`, <root>/ckpt-<step>, for this command of a chief:
// ABORTED where the root is another job's, or where a later epoch or term owns it. A root without
// an owner is anybody's.
absl::Status CheckShardWriter(const std::string& checkpoint, uint64_t job, uint64_t epoch,
                              uint64_t term);

}  // namespace lockstep
