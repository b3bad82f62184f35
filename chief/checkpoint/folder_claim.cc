#include "chief/checkpoint/folder_claim.h"

#include <tuple>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/status_macros.h"
#include "common/fs/folder.h"
#include "common/fs/path.h"

namespace lockstep::chief {
namespace {

constexpr char kLockFile[] = "LOCK";
// The chief before that ends a save may take the temporary file for one that a crash has left.
constexpr int kWrites = 3;

// Of one chief and one epoch: a chief that leaves takes a further term for its last save.
bool IsSame(const FolderOwner& owner, const FolderOwner& wanted) {
  return owner.job == wanted.job && owner.epoch == wanted.epoch && owner.chief == wanted.chief;
}

}  // namespace

absl::Status FolderClaim::CheckNotAbandoned() const {
  if (!is_abandoned_.load()) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat(root_, ": the chief that claimed it does not go on"));
}

absl::Status FolderClaim::CheckMayTake(const std::optional<FolderOwner>& owner,
                                       const FolderOwner& wanted) const {
  LOCKSTEP_RETURN_IF_ERROR(CheckNotAbandoned());
  if (!owner.has_value() || IsSame(*owner, wanted)) return absl::OkStatus();
  const std::string whose = absl::StrCat(root_, " belongs to ", Describe(*owner));
  if (owner->job == wanted.job) {
    const bool is_later = std::tie(wanted.epoch, wanted.term) > std::tie(owner->epoch, owner->term);
    if (is_later) return absl::OkStatus();
    return absl::AbortedError(absl::StrCat(whose, ": epoch ", wanted.epoch, ", term ", wanted.term,
                                           " of this chief is over"));
  }
  if (wanted.epoch > owner->epoch) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      whose, ", and this job is in epoch ", wanted.epoch,
      ". Remedy: give this job another checkpoint.folder, or start every ps again and its chief "
      "with --resume, which goes on from the newest checkpoint there"));
}

absl::Status FolderClaim::Lock(const FolderOwner& wanted, const std::optional<FolderOwner>& owner) {
  {
    absl::MutexLock lock(&mutex_);
    if (lock_.has_value()) return absl::OkStatus();
  }
  absl::StatusOr<FileLock> taken = FileLock::TryAcquire(
      JoinPath(root_, kLockFile), absl::StrCat("process ", wanted.pid, " on host ", wanted.host,
                                               ", the chief of job ", absl::Hex(wanted.job)));
  if (taken.ok()) {
    absl::MutexLock lock(&mutex_);
    lock_ = *std::move(taken);
    return absl::OkStatus();
  }
  // The system's code may be FAILED_PRECONDITION, which here means a refusal.
  if (!absl::IsAlreadyExists(taken.status())) {
    return absl::UnavailableError(taken.status().message());
  }
  if (owner.has_value() && owner->job == wanted.job) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      taken.status().message(),
      owner.has_value() ? absl::StrCat("; the folder belongs to ", Describe(*owner)) : "",
      ". Remedy: give each job a checkpoint.folder of its own, or wait until that "
      "process has ended"));
}

absl::Status FolderClaim::Enter(const FolderOwner& wanted) {
  if (!IsFolder(root_)) return absl::OkStatus();
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<FolderOwner> owner, ReadOwner(root_));
  LOCKSTEP_RETURN_IF_ERROR(CheckMayTake(owner, wanted));
  absl::Status locked = Lock(wanted, owner);
  if (locked.ok() || absl::IsFailedPrecondition(locked)) return locked;
  AddWarning(locked);
  return absl::OkStatus();
}

absl::Status FolderClaim::Take(FolderOwner wanted) {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<FolderOwner> owner, ReadOwner(root_));
  if (owner.has_value() && owner->job == wanted.job && owner->epoch == wanted.epoch) {
    wanted.origin = owner->origin;
    wanted.source = owner->source;
    wanted.is_fresh = owner->is_fresh;
  }
  {
    absl::MutexLock lock(&mutex_);
    wanted_ = wanted;
  }
  LOCKSTEP_RETURN_IF_ERROR(CheckMayTake(owner, wanted));
  if (!IsFolder(root_)) return absl::OkStatus();
  absl::Status written = Write(wanted);
  if (written.ok() || absl::IsAborted(written)) return written;
  AddWarning(written);
  absl::MutexLock lock(&mutex_);
  is_owed_ = true;
  return absl::OkStatus();
}

void FolderClaim::AddWarning(const absl::Status& failure) {
  absl::MutexLock lock(&mutex_);
  warnings_.push_back(absl::StrCat(
      failure.message(),
      "; tried again with the first save. Remedy: see that this process can write into ", root_));
}

std::vector<std::string> FolderClaim::TakeWarnings() {
  absl::MutexLock lock(&mutex_);
  return std::exchange(warnings_, {});
}

std::optional<FolderOwner> FolderClaim::owed_owner() const {
  absl::MutexLock lock(&mutex_);
  if (!is_owed_) return std::nullopt;
  return wanted_;
}

absl::Status FolderClaim::Ensure() {
  const FolderOwner wanted = this->wanted();
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<FolderOwner> owner, ReadOwner(root_));
  LOCKSTEP_RETURN_IF_ERROR(CheckMayTake(owner, wanted));
  absl::Status locked = Lock(wanted, owner);
  if (absl::IsFailedPrecondition(locked)) return locked;
  if (!owner.has_value() || !IsSame(*owner, wanted)) LOCKSTEP_RETURN_IF_ERROR(Write(wanted));
  absl::MutexLock lock(&mutex_);
  is_owed_ = false;
  return absl::OkStatus();
}

absl::Status FolderClaim::Write(const FolderOwner& wanted) const {
  absl::Status status;
  for (int tries = 0; tries < kWrites; ++tries) {
    status = WriteOwner(root_, wanted, [&]() -> absl::Status {
      LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<FolderOwner> owner, ReadOwner(root_));
      return CheckMayTake(owner, wanted);
    });
    if (!absl::IsNotFound(status)) return status;
  }
  return status;
}

absl::Status FolderClaim::Check() const {
  LOCKSTEP_ASSIGN_OR_RETURN(const std::optional<FolderOwner> owner, ReadOwner(root_));
  LOCKSTEP_RETURN_IF_ERROR(CheckNotAbandoned());
  if (!owner.has_value() || IsSame(*owner, wanted())) return absl::OkStatus();
  return absl::AbortedError(
      absl::StrCat(root_, " belongs to ", Describe(*owner), ": the command of this chief is over"));
}

FolderOwner FolderClaim::wanted() const {
  absl::MutexLock lock(&mutex_);
  return wanted_;
}

void FolderClaim::InheritLock(FolderClaim* before) {
  std::optional<FileLock> lock;
  {
    absl::MutexLock guard(&before->mutex_);
    lock = std::exchange(before->lock_, std::nullopt);
  }
  absl::MutexLock guard(&mutex_);
  lock_ = std::move(lock);
}

void FolderClaim::ReleaseLock() {
  absl::MutexLock guard(&mutex_);
  lock_.reset();
}

}  // namespace lockstep::chief
