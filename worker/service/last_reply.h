// The reply of a chief that this process has got last: its next calls name it.
#pragma once

#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "proto/chief.pb.h"

namespace lockstep::worker {

// Thread-safe.
class LastReply {
 public:
  explicit LastReply(ReplyId id = ReplyId()) : id_(std::move(id)) {}

  // The replies to two calls may come in another order than they were made. False: a newer one has
  // come before.
  bool Set(const ReplyId& id) {
    absl::MutexLock lock(&mutex_);
    if (id.run() == 0) return true;
    if (id.run() == id_.run() && id.number() < id_.number()) return false;
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
};

}  // namespace lockstep::worker
