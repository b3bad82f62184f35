// Joins the answers of several that were asked at once, one of each.
#pragma once

#include <cstddef>
#include <span>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/callback.h"

namespace lockstep {

// SetAnswer may be called from any thread; Arm by the one that asks, before it asks. Allocates
// nothing after its making, but for errors.
template <typename T>
class FanIn {
 public:
  // Of `size` members, not 0.
  explicit FanIn(size_t size) : answers_(size) {}

  // Begins anew. When each member has told its answer, `done` gets all of them, which stay until
  // the next Arm, or the first error. Not before the last `done`.
  void Arm(Callback<std::span<const T>> done) {
    absl::MutexLock lock(&mutex_);
    pending_ = answers_.size();
    failure_ = absl::OkStatus();
    done_ = std::move(done);
  }
  void SetAnswer(size_t index, absl::StatusOr<T> answer) {
    Callback<std::span<const T>> done;
    absl::StatusOr<std::span<const T>> result;
    {
      absl::MutexLock lock(&mutex_);
      if (answer.ok()) {
        answers_[index] = *std::move(answer);
      } else {
        failure_.Update(answer.status());
      }
      if (--pending_ > 0) return;
      done = std::exchange(done_, nullptr);
      result = failure_.ok() ? absl::StatusOr<std::span<const T>>(std::span<const T>(answers_))
                             : absl::StatusOr<std::span<const T>>(failure_);
    }
    done(std::move(result));
  }

 private:
  absl::Mutex mutex_;
  size_t pending_ ABSL_GUARDED_BY(mutex_) = 0;
  absl::Status failure_ ABSL_GUARDED_BY(mutex_);
  Callback<std::span<const T>> done_ ABSL_GUARDED_BY(mutex_);
  std::vector<T> answers_;  // guarded while any is pending
};

}  // namespace lockstep
