// What a call under a lock leaves to be done after it: completion callbacks, and memory to let go.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/container/inlined_vector.h"
#include "absl/functional/any_invocable.h"
#include "absl/synchronization/mutex.h"
#include "common/base/callback.h"
#include "common/base/check.h"
#include "common/tensor/tensor.h"

namespace lockstep::ps {

// Filled under the lock, run once without it, by the same thread.
class DeferredCallbacks {
 public:
  // What was put in must have been run (CHECK): a callback that is forgotten is a caller that waits
  // for ever.
  ~DeferredCallbacks() { LOCKSTEP_CHECK(actions_.empty() && memory_.empty() && tensors_.empty()); }

  template <typename T>
  void Answer(Callback<T> done, absl::StatusOr<T> result) {
    actions_.push_back([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  }
  void LetGo(std::shared_ptr<const void> memory) { memory_.push_back(std::move(memory)); }
  // For tensors to let go, to be appended.
  absl::InlinedVector<Tensor, 4>* tensors() { return &tensors_; }

  // In the order in which they were put in.
  void Run() {
    memory_.clear();
    for (auto& action : std::exchange(actions_, {})) action();
    tensors_.clear();  // large: nobody waits for their pages to be unmapped
  }

 private:
  std::vector<absl::AnyInvocable<void()>> actions_;
  std::vector<std::shared_ptr<const void>> memory_;
  absl::InlinedVector<Tensor, 4> tensors_;
};

// Holds the lock, and runs what was deferred under it as soon as it is released.
class ABSL_SCOPED_LOCKABLE DeferringLock {
 public:
  explicit DeferringLock(absl::Mutex* mu) ABSL_EXCLUSIVE_LOCK_FUNCTION(mu) : mu_(mu) {
    mu_->Lock();
  }
  ~DeferringLock() ABSL_UNLOCK_FUNCTION() {
    mu_->Unlock();
    deferred_.Run();
  }
  DeferredCallbacks* deferred() { return &deferred_; }

 private:
  absl::Mutex* const mu_;
  DeferredCallbacks deferred_;
};

}  // namespace lockstep::ps
