// The calls that a client has in flight: so that they can be cancelled, and waited for.
#pragma once

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
  // After the call's callback; the context may go.
  void Leave(grpc::ClientContext* context);

  // Cancels what is in flight and refuses what comes later.
  void CancelAll();
  // Never from a callback.
  void CancelAndWait();

 private:
  absl::Mutex mutex_;
  bool cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  absl::flat_hash_set<grpc::ClientContext*> calls_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep
