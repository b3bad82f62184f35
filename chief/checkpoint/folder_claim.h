// A job's right to its checkpoint folder: no chief whose command is over, and none of another job,
// writes or deletes there.
//
// Two things guard the folder. LOCK is held by the chief's process as long as that lives, so two
// jobs do not share a folder on one host, nor on storage with locks. OWNER.json names the owner
// (common/checkpoint/owner.h), and is read again before each file that appears or goes. A chief
// that takes over from another one of its job needs no lock: that one may be stopped, and the step
// shard has decided who commands. It takes the lock with its first save for which that is free.
#pragma once

#include <atomic>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/checkpoint/owner.h"
#include "common/fs/file_lock.h"

namespace lockstep::chief {

// Thread-safe. Every call but `origin`, owed_owner, InheritLock, ReleaseLock and Abandon waits for
// the disk.
class FolderClaim {
 public:
  explicit FolderClaim(std::string root) : root_(std::move(root)) {}

  // Before `wanted` commands any shard. FAILED_PRECONDITION (exit code 78) names the process or the
  // job that has the folder: another job takes it with a higher epoch only, and not while the chief
  // there lives. ABORTED: a later epoch or term of this job has it. A folder that is not there, or
  // cannot be locked, is no error: Ensure tries again.
  absl::Status Enter(const FolderOwner& wanted);
  // The step shard has accepted the command: writes OWNER.json. The origin of an epoch that goes on
  // stays. Errors as Enter; what cannot be written, on a full disk, is left to Ensure.
  absl::Status Take(FolderOwner wanted);
  // What Enter and Take could not do since the last call, and what the user can do. Does not wait
  // for the disk.
  std::vector<std::string> TakeWarnings();
  // Before a checkpoint is committed: does what Enter and Take could not. Errors as theirs, and as
  // WriteError says.
  absl::Status Ensure();
  // What Take could not write to OWNER.json: the folder still looks like that of the one before,
  // whose files nobody may touch, before Ensure. nullopt: nothing. Does not wait for the disk.
  std::optional<FolderOwner> owed_owner() const;
  // After Take, before a file appears or goes. ABORTED naming the owner when that is another. A
  // folder without OWNER.json is nobody's.
  absl::Status Check() const;

  // After Take: of the epoch.
  CheckpointOrigin origin() const { return wanted().origin; }
  // The next job of this process has its lock from now on.
  void InheritLock(FolderClaim* before);
  // Releases the lock of a chief that never commanded, so that another chief can lock the folder.
  void ReleaseLock();
  // The chief, or its run of the job, does not go on. Calls under way and later ones end with
  // ABORTED, and Take, Ensure and those that ask Check publish and delete nothing.
  void Abandon() { is_abandoned_.store(true); }

 private:
  // FAILED_PRECONDITION: another process has it and this one needs it. UNAVAILABLE: it cannot be
  // locked.
  absl::Status Lock(const FolderOwner& wanted, const std::optional<FolderOwner>& owner);
  absl::Status CheckNotAbandoned() const;
  absl::Status CheckMayTake(const std::optional<FolderOwner>& owner,
                            const FolderOwner& wanted) const;
  absl::Status Write(const FolderOwner& wanted) const;
  FolderOwner wanted() const;
  void AddWarning(const absl::Status& failure);

  const std::string root_;
  std::atomic<bool> is_abandoned_ = false;
  mutable absl::Mutex mutex_;  // not held while the disk works
  std::optional<FileLock> lock_ ABSL_GUARDED_BY(mutex_);
  FolderOwner wanted_ ABSL_GUARDED_BY(mutex_);
  bool is_owed_ ABSL_GUARDED_BY(mutex_) = false;
  std::vector<std::string> warnings_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::chief
