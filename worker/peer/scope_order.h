// In which order the vectors of a reduction begin: scope after scope, the vectors of one together.
#pragma once

#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "worker/collective/collective_all_reduce.h"

namespace lockstep::worker {

// Thread-safe.
class ScopeOrder {
 public:
  explicit ScopeOrder(std::vector<MergeScope> scopes) : scopes_(std::move(scopes)) {}

  // The next reduction begins. All vectors of the last one are done, or none begins any more.
  void Restart();
  // Calls `begin` for each vector that may begin now, in order, on one thread at a time and not
  // under a lock. A vector may be done before `begin` returns.
  void BeginVectors(absl::FunctionRef<void(size_t vector)> begin);
  // One vector that has begun is done. BeginVectors next.
  void OnDone();

 private:
  const std::vector<MergeScope> scopes_;
  absl::Mutex mutex_;
  size_t next_ ABSL_GUARDED_BY(mutex_) = 0;  // of scopes_
  size_t open_ ABSL_GUARDED_BY(mutex_) = 0;  // vectors of the newest scope that are not done
  bool is_beginning_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::worker
