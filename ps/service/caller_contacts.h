// Which workers a ps hears of, by their pings: logs one that is silent, and that it is back.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/string_view.h"
#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/timer.h"
#include "common/contact/silence_watch.h"
#include "ps/shard/orders.h"

namespace lockstep::ps {

// Thread-safe.
class WorkerContacts {
 public:
  // One that is no member any more, by `is_member`, is forgotten without a word: the chief has
  // said why. Both functions are called without a lock. `clock` outlives the contacts.
  WorkerContacts(const Clock* clock, std::function<bool(const WorkerIdentity&)> is_member,
                 std::function<void(absl::string_view)> log);

  // From now on `timer` has silence noticed, until Stop. The timer is gone before the contacts.
  void Start(Timer* timer);
  void Stop();

  // A ping of a member has come. `lease`: the silence that is worth a line.
  void OnPing(const WorkerIdentity& worker, absl::Duration lease);

 private:
  struct Contact {
    WorkerIdentity worker;
    SilenceWatch watch;
  };

  void Look();
  void Arm() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Forget(const WorkerIdentity& worker);

  const Clock* const clock_;
  const std::function<bool(const WorkerIdentity&)> is_member_;
  const std::function<void(absl::string_view)> log_;
  absl::Mutex mutex_;
  Timer* timer_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool is_armed_ ABSL_GUARDED_BY(mutex_) = false;
  std::map<uint32_t, Contact> contacts_ ABSL_GUARDED_BY(mutex_);  // by index
};

}  // namespace lockstep::ps
