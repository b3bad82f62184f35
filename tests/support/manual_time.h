// A clock and a timer that move when told, also while other threads look at them.
#pragma once

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/clock.h"
#include "common/base/timer.h"

namespace lockstep::test {

// Thread-safe; callbacks run on the thread that advances.
class ManualTime final : public Clock, public Timer {
 public:
  absl::Duration Monotonic() const override {
    absl::MutexLock lock(&mutex_);
    return now_;
  }
  absl::Time Wall() const override { return absl::UnixEpoch() + Monotonic(); }

  void After(absl::Duration delay, absl::AnyInvocable<void()> callback) override {
    absl::MutexLock lock(&mutex_);
    waiting_.push_back({now_ + delay, std::move(callback)});
  }

  // Runs what is due by then. What callbacks set up anew waits for the next call.
  void Advance(absl::Duration by) {
    std::vector<Waiting> due;
    {
      absl::MutexLock lock(&mutex_);
      now_ += by;
      std::vector<Waiting> later;
      for (Waiting& one : waiting_) (one.at <= now_ ? due : later).push_back(std::move(one));
      waiting_ = std::move(later);
    }
    for (Waiting& one : due) one.callback();
  }

 private:
  struct Waiting {
    absl::Duration at;
    absl::AnyInvocable<void()> callback;
  };

  mutable absl::Mutex mutex_;
  absl::Duration now_ ABSL_GUARDED_BY(mutex_) = absl::ZeroDuration();
  std::vector<Waiting> waiting_ ABSL_GUARDED_BY(mutex_);
};

// For one who owns its timer, in front of one that the test keeps.
class ForwardingTimer final : public Timer {
 public:
  explicit ForwardingTimer(ManualTime* time) : time_(time) {}
  void After(absl::Duration delay, absl::AnyInvocable<void()> callback) override {
    time_->After(delay, std::move(callback));
  }

 private:
  ManualTime* const time_;
};

}  // namespace lockstep::test
