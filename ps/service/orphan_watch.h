// OrphanWatch decides when a ps ends: its chief does not come back, or it was signalled and no save
// is awaited. Pure: times are arguments, of one monotonic clock that does not count the time in
// which this process stood still. Thread-safe.
#pragma once

#include <optional>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"

namespace lockstep::ps {

class OrphanWatch {
 public:
  // `timeout`: the silence of the chief after which the ps ends; infinite: never.
  explicit OrphanWatch(absl::Duration timeout) : timeout_(timeout) {}

  // A chief has called.
  void Called(absl::Duration now);
  // The chief waits for long work, such as a restore, between BeginWork and EndWork. It does not
  // count as silent meanwhile.
  void BeginWork(absl::Duration now);
  void EndWork(absl::Duration now);

  // Returns whether a chief has called and then been silent for the timeout.
  bool IsOrphan(absl::Duration now) const;
  // UNAVAILABLE: the error with which an orphan exits.
  absl::Status Ended() const;

  // The ps is signalled to end. Slurm, `kubectl delete` and a host that shuts down signal all
  // processes of a job at once. The chief then saves the state of the ps after any save under way.
  // Call it once.
  void Signalled(absl::Duration now);
  // Returns whether a signalled ps still has to serve, so that the chief can save its state.
  bool MayBeSaved(absl::Duration now) const;

 private:
  const absl::Duration timeout_;
  mutable absl::Mutex mutex_;
  bool was_called_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration last_call_ ABSL_GUARDED_BY(mutex_);
  int works_ ABSL_GUARDED_BY(mutex_) = 0;  // calls of BeginWork without EndWork
  std::optional<absl::Duration> signalled_ ABSL_GUARDED_BY(mutex_);
  // The time when the work begun before the signal ended.
  std::optional<absl::Duration> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::ps
