// Work deferred until a lock is released: completion callbacks to run, and memory to release.
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
  // Everything added must have been run (CHECK): the caller of a forgotten callback waits for ever.
  ~DeferredCallbacks() { LOCKSTEP_CHECK(actions_.empty() && memory_.empty() && tensors_.empty()); }

  template <typename T>
  void Answer(Callback<T> done, absl::StatusOr<T> result) {
    actions_.push_back([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  }
  void LetGo(std::shared_ptr<const void> memory) { memory_.push_back(std::move(memory)); }
  // Append tensors to release here.
  absl::InlinedVector<Tensor, 4>* tensors() { return &tensors_; }

  // Runs the callbacks in the order in which they were added, and releases the memory.
  void Run() {
    memory_.clear();
    for (auto& action : std::exchange(actions_, {})) action();
    tensors_.clear();  // last: unmapping their pages takes long
  }

 private:
  std::vector<absl::AnyInvocable<void()>> actions_;
  std::vector<std::shared_ptr<const void>> memory_;
  absl::InlinedVector<Tensor, 4> tensors_;
};

// Holds the lock, and runs the deferred work as soon as the lock is released.
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
