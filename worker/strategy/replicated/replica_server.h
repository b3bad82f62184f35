// What other members of the group read of this worker's replicas.
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
  // From now on these are read, which outlive the server. Once.
  void Serve(const Replicas* replicas);
  // Makes the next version, while nobody reads. One call at a time.
  void Change(absl::FunctionRef<void()> apply);

  // As OwnState. Does not wait for a version that is being made: UNAVAILABLE.
  absl::StatusOr<StatePiece> Read(GlobalStep version, uint64_t offset, uint64_t size) override;

 private:
  absl::Mutex mutex_;
  const Replicas* replicas_ ABSL_GUARDED_BY(mutex_) = nullptr;
  bool is_changing_ ABSL_GUARDED_BY(mutex_) = false;
};

}  // namespace lockstep::worker
