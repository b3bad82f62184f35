// A function that is called on a thread of its own, whenever somebody has news for it.
#pragma once

#include <functional>
#include <thread>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace lockstep::worker {

// For a function that takes long, where the caller must not wait: it polls an rpc::EventQueue.
// Thread-safe.
class BackgroundCall {
 public:
  explicit BackgroundCall(std::function<void()> call);
  // Waits for a call under way; one that is still to come is not made. Not in a call.
  ~BackgroundCall();

  // There will be a call that begins after this. Does not block.
  void Request();

 private:
  void Run();
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return is_closed_ || is_requested_; }

  const std::function<void()> call_;
  absl::Mutex mutex_;
  bool is_requested_ ABSL_GUARDED_BY(mutex_) = false;
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: uses all above
};

}  // namespace lockstep::worker
