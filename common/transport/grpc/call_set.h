// The calls that a client has in flight: so that they can be cancelled, and waited for.
#pragma once

#include <memory>

#include "absl/base/thread_annotations.h"
#include "absl/container/flat_hash_set.h"
#include "absl/synchronization/mutex.h"

namespace grpc {
class ClientContext;
}

namespace lockstep {

// Thread-safe.
class CallSet {
 public:
  CallSet() = default;
  ~CallSet() { CancelAndWait(); }

  // False after CancelAll: the call must not start.
  [[nodiscard]] bool Enter(grpc::ClientContext* context);
  // The call has ended. Destroys its context, and gRPC's part of the call with it.
  void Ended(std::unique_ptr<grpc::ClientContext> context);
  // After Ended and the call's callback: the last that happens. A context holds its channel, and
  // gRPC's thread must not be the one that ends a channel.
  void Leave();

  // Whether CancelAll has been called.
  bool is_cancelled() const;
  // Cancels what is in flight and refuses what comes later.
  void CancelAll();
  // Never from a callback.
  void CancelAndWait();

 private:
  mutable absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);  // to be cancelled
  int unfinished_ ABSL_GUARDED_BY(mutex_) = 0;
};

}  // namespace lockstep
