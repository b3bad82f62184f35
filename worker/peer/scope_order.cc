#include "worker/peer/scope_order.h"

namespace lockstep::worker {

void ScopeOrder::Restart() {
  absl::MutexLock lock(&mutex_);
  next_ = 0;
  open_ = 0;
}

void ScopeOrder::BeginVectors(absl::FunctionRef<void(size_t vector)> begin) {
  for (;;) {
    MergeScope scope;
    {
      absl::MutexLock lock(&mutex_);
      // A scope whose vectors are done at once is followed by the loop that began it, not in here
      // again and again, deeper each time.
      if (is_beginning_ || open_ > 0 || next_ == scopes_.size()) return;
      is_beginning_ = true;
      scope = scopes_[next_++];
      open_ = scope.count;
    }
    for (size_t i = 0; i < scope.count; ++i) begin(scope.first + i);
    absl::MutexLock lock(&mutex_);
    is_beginning_ = false;
  }
}

void ScopeOrder::OnDone() {
  absl::MutexLock lock(&mutex_);
  --open_;
}

}  // namespace lockstep::worker
