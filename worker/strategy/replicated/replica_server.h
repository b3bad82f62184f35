// ReplicaServer lets other members of the group read the state of this worker's replicas.
#pragma once

#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/functional/function_ref.h"
#include "absl/synchronization/mutex.h"
#include "worker/collective/member_state.h"
#include "worker/strategy/replicated/replicas.h"

namespace lockstep::worker {

// Thread-safe.
class ReplicaServer final : public OwnState {
 public:
  // Serves `replicas` from now on. They outlive the server. Called once.
  void Serve(const Replicas* replicas);
  // Runs `apply`, which makes the next version. Reads fail meanwhile. One call at a time.
  void Change(absl::FunctionRef<void()> apply);

  // As OwnState. UNAVAILABLE, without a wait, while a version is being made.
  absl::StatusOr<StatePiece> Read(GlobalStep version, uint64_t offset, uint64_t size) override;

 private:
  absl::Mutex mutex_;
  const Replicas* replicas_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool is_changing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::worker
