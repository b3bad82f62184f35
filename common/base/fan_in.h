// Waits for the answers of several that were asked at once, one of each.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/synchronization/mutex.h"

namespace lockstep {

// Tell may be called from any thread; the rest from the one that asks. Allocates nothing after its
// making, but for errors.
template <typename T>
class FanIn {
 public:
  explicit FanIn(size_t size) : answers_(size) {}

  // Begins anew: `pending` answers are to come. The others keep what they are.
  void Expect(size_t pending) {
    absl::MutexLock lock(&mutex_);
    pending_ = pending;
    failure_ = absl::OkStatus();
  }
  void Tell(size_t index, absl::StatusOr<T> answer) {
    absl::MutexLock lock(&mutex_);
    if (answer.ok()) {
      answers_[index] = *std::move(answer);
    } else {
      failure_.Update(answer.status());
    }
    --pending_;
  }
  // Blocks until all have come; at once where nothing was asked. The first error.
  absl::StatusOr<std::span<const T>> Wait() {
    absl::MutexLock lock(&mutex_);
    mutex_.Await(absl::Condition(
        +[](size_t* pending) { return *pending == 0; }, &pending_));
    if (!failure_.ok()) return failure_;
    return std::span<const T>(answers_);
  }

 private:
  absl::Mutex mutex_;
  size_t pending_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  std::vector<T> answers_;  // guarded while any is pending
};

}  // namespace lockstep
