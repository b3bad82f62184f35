// Saves a kept version: every shard writes its file, then the manifest makes the checkpoint exist.
// Beside training, one at a time.
//
// Lives on the executor's thread; the disk is waited for on another.
#pragma once

#include <functional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "chief/checkpoint/folder_claim.h"
#include "chief/loop/executor.h"
#include "common/base/callback.h"
#include "common/base/ids.h"
#include "common/checkpoint/checkpoint.h"
#include "common/client/ps_control.h"

namespace lockstep::chief {

struct CheckpointerOptions {
  Command command;
  std::string root;
  int keep_last = 3;
  Manifest manifest;             // without step and shards
  FolderClaim* claim = nullptr;  // to `root`; outlives the checkpointer
  bool waits_for_disk = false;   // on the executor's thread: in simulated time there is no other
  // Gets a line for each thing that went wrong beside a save: an old checkpoint that could not be
  // deleted, or the first one whose values are not finite (divergence.h). On the executor's thread,
  // before the save's `done`.
  std::function<void(std::string)> warn;
};

class Checkpointer {
 public:
  // `shards` and `executor` outlive the calls in flight: destroy the checkpointer after the
  // executor has ended or is closed.
  Checkpointer(CheckpointerOptions options, std::vector<PsControl*> shards, Executor* executor);
  // Waits for the disk.
  ~Checkpointer();

  // Only when not busy. `done` gets the checkpoint's folder, or why there is none; what was there
  // before is intact, and what the save has written is deleted. ABORTED: the folder, or a shard, is
  // another chief's. Nothing is tried twice.
  void Save(GlobalStep version, Callback<std::string> done);
  bool busy() const { return busy_; }
  // A save runs, and no shard has failed yet.
  bool may_succeed() const { return busy_ && failure_.ok(); }

 private:
  void AskShards();
  void OnShard(size_t shard, absl::StatusOr<SaveReply> reply);
  void EndOnDisk();
  void RunOnDisk(std::function<void()> work);
  absl::StatusOr<std::string> CommitOwned(const Manifest& manifest,
                                          std::vector<std::string>* warnings) const;
  void End(absl::StatusOr<std::string> folder, std::vector<std::string> warnings);

  const CheckpointerOptions options_;
  const PublishCheck check_;
  const std::vector<PsControl*> shards_;
  Executor* const executor_;

  bool busy_ = false;
  bool has_diverged_ = false;  // the last checkpoint is not finite, which was told
  // Of the save that runs.
  Callback<std::string> done_;
  Manifest manifest_;
  size_t open_ = 0;  // shards that have not answered
  absl::Status failure_;
  std::thread disk_;
};

// A shard's answer as the manifest has it. INVALID_ARGUMENT naming the tensor for one that makes no
// sense.
absl::StatusOr<ShardFile> ToShardFile(const SaveReply& reply);

}  // namespace lockstep::chief
