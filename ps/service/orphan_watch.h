// When a ps ends for its chief's sake: one whose chief does not come back, and one that is told to
// end. Pure: times are arguments, of one monotonic clock that does not count the time in which this
// process stood still. Thread-safe.
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
  // The chief waits for work that takes long, such as a restore, from `begins` to `ends`: it is not
  // silent meanwhile.
  void BeginWork(absl::Duration now);
  void EndWork(absl::Duration now);

  // Whether a chief called once and has been silent for longer than the timeout since.
  bool IsOrphan(absl::Duration now) const;
  // UNAVAILABLE for an orphan: what the process ends with.
  absl::Status Ended() const;

  // The ps is signalled to end. Slurm, `kubectl delete` and a host that shuts down signal all
  // processes of a job at once. The chief then saves the state of the ps, when a save that is under
  // way has ended. Once.
  void Signalled(absl::Duration now);
  // Whether a ps that was signalled still has to serve.
  bool MayBeSaved(absl::Duration now) const;

 private:
  const absl::Duration timeout_;
  mutable absl::Mutex mutex_;
  bool was_called_ ABSL_GUARDED_BY(mutex_) = false;
  absl::Duration last_call_ ABSL_GUARDED_BY(mutex_);
  int works_ ABSL_GUARDED_BY(mutex_) = 0;  // that have begun and not ended
  std::optional<absl::Duration> signalled_ ABSL_GUARDED_BY(mutex_);
  // When the work that had begun before the signal was over.
  std::optional<absl::Duration> idle_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::ps
