// The reply of a chief that this process has got last: its next calls name it.
#pragma once

#include <cstdint>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/chief.pb.h"

namespace lockstep::worker {

// Thread-safe.
class LastReply {
 public:
  explicit LastReply(ReplyId id = ReplyId()) : id_(std::move(id)) {}

  // The replies to two calls may come in another order than they were made. Returns false if a
  // newer one has come before, of the same run or of the one that followed it.
  bool Set(const ReplyId& id) {
    absl::MutexLock lock(&mutex_);
    if (id.run() == 0) return true;
    if (id.run() == run_before_) return false;
    if (id.run() == id_.run() && id.number() < id_.number()) return false;
    if (id.run() != id_.run()) run_before_ = id_.run();
    id_ = id;
    return true;
  }
  template <typename Request>
  void NameIn(Request* request) const {
    absl::MutexLock lock(&mutex_);
    if (id_.run() != 0) *request->mutable_last_reply() = id_;
  }

 private:
  mutable absl::Mutex mutex_;
  ReplyId id_ ABSL_GUARDED_BY(mutex_);
  uint64_t run_before_ ABSL_GUARDED_BY(mutex_) = 0;  // the run that id_'s has followed; 0: none
};

}  // namespace lockstep::worker
