// A timer on the thread of an event queue.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"
#include "common/base/timer.h"
#include "common/rpc/event_queue.h"

namespace lockstep::rpc {

// Thread-safe. Waits by the monotonic clock only in programs that replace gRPC's waits
// (docs/adr/0010-grpc-timers.md), as the daemons do.
class AlarmTimer final : public Timer {
 public:
  // The queue outlives the timer, and is not drained before.
  explicit AlarmTimer(EventQueue* queue) : queue_(queue) {}
  // Waits for callbacks under way. Not on the queue's thread.
  ~AlarmTimer() override;

  void After(absl::Duration delay, absl::AnyInvocable<void()> callback) override;

 private:
  class Pending;

  bool IsClosing();

  EventQueue* const queue_;
  absl::Mutex mutex_;
  bool is_closing_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<Pending*> pending_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::rpc
