// The chief's lease at the step shard, and the calls of standby chiefs that wait for its end.
#pragma once

#include <functional>
#include <list>
#include <string>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/base/timer.h"
#include "proto/ps.pb.h"
#include "ps/service/chief_lease.h"

namespace lockstep::ps {

// Thread-safe. Callbacks are called without a lock.
class CommandWatch {
 public:
  // `clock` outlives it.
  explicit CommandWatch(const Clock* clock) : clock_(clock) {}

  // From now on `timer` tells when a lease ends; until Stop, or the end of this, before which
  // neither callbacks of the timer may be under way.
  void Start(Timer* timer);
  // Answers what is parked, and every later call, UNAVAILABLE.
  void Stop();

  // As of ChiefLease.
  void Renew(const LeaseHolder& holder);
  void Release(Incarnation chief);
  void EndJob(int exit_code, std::string reason);
  void EndJob(Incarnation chief, int exit_code, std::string reason);
  CommandStatus Status() const;
  // The job is over, and a standby that has watched before may have no call parked now: it asks
  // once more, unless it heard of the end.
  bool MayBeAsked() const;

  // Parked while the holder of the term that the caller names has its lease, and while a caller
  // that names none finds none. A further call of the same caller replaces its parked one, which is
  // answered UNAVAILABLE. Where too many wait, the oldest is answered RESOURCE_EXHAUSTED.
  void Watch(const WatchCommandRequest& request, Callback<WatchCommandReply> done);

 private:
  struct Parked {
    uint64_t caller = 0;
    uint64_t term = 0;
    Callback<WatchCommandReply> done;
  };

  // Changes the lease, then answers those that wait for that.
  void Change(const std::function<void(ChiefLease*, absl::Duration now)>& change);
  std::vector<Callback<WatchCommandReply>> TakeAnswered(const CommandStatus& status)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Asks the timer to look again when the lease that somebody waits for ends.
  void Arm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const Clock* const clock_;
  mutable absl::Mutex mutex_;
  bool stopped_ ABSL_GUARDED_BY(mutex_) = false;
  Timer* timer_ ABSL_GUARDED_BY(mutex_) = nullptr;
  // When the timer looks next.
  absl::Duration armed_for_ ABSL_GUARDED_BY(mutex_) = absl::InfiniteDuration();
  ChiefLease lease_ ABSL_GUARDED_BY(mutex_);
  bool was_watched_ ABSL_GUARDED_BY(mutex_) = false;
  std::list<Parked> parked_ ABSL_GUARDED_BY(mutex_);  // oldest first
};

}  // namespace lockstep::ps
