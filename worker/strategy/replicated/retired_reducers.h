// The reducers of groups that are over, until they are destroyed.
#pragma once

#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/collective/group_reducer.h"

namespace lockstep::worker {

// Destroys them on a thread of its own: the destructor of a reducer waits for its callbacks. The
// thread that tells of a new group may be in one of them, or poll the queue that they come from
// (rpc::EventQueue). Thread-safe.
class RetiredReducers {
 public:
  RetiredReducers();
  // Returns when all have been destroyed. Not in a callback of one.
  ~RetiredReducers();

  // Destroys the reducer soon, unless another owner keeps it. Does not block. May be called in a
  // callback of the reducer, which may be null.
  void Add(std::shared_ptr<GroupReducer> reducer);

 private:
  void Destroy();
  bool HasNews() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) {
    return is_closed_ || !reducers_.empty();
  }

  absl::Mutex mutex_;
  std::vector<std::shared_ptr<GroupReducer>> reducers_ ABSL_GUARDED_BY(mutex_);
  bool is_closed_ ABSL_GUARDED_BY(mutex_) = false;
  std::thread thread_;  // last: uses all above
};

}  // namespace lockstep::worker
