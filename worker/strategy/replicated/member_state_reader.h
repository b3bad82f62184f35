// Reads the version that a worker joins at from a member of its group that has it.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/status/status.h"
#include "absl/synchronization/mutex.h"
#include "common/base/callback.h"
#include "common/base/clock.h"
#include "common/base/gate.h"
#include "common/base/timer.h"
#include "common/optimizer_proto/optimizer_rules.h"
#include "worker/collective/member_state.h"
#include "worker/strategy/replicated/replica_state.h"

namespace lockstep::worker {

// Thread-safe.
class MemberStateReader {
 public:
  // All outlive the reader. `make_tensor` as of UninitializedState.
  MemberStateReader(const VariableLayout& layout, const OptimizerRules& rules, Timer* timer,
                    const Clock* clock, TensorMaker make_tensor = OnHeap);
  // Waits for calls in flight. Never in a callback.
  ~MemberStateReader();

  // Reads the version of the first of these members that answers, from another one when it goes.
  // One call at a time; `states` stays until `done`, and is not used afterwards. ABORTED: the group
  // has a newer view, read in that. CANCELLED: the group has ended, or Cancel was called.
  // INVALID_ARGUMENT: a member has another model or optimizer. UNAVAILABLE: none of them had
  // anything to tell for 15 s: the chief may take members for such that have the version, and they
  // have not.
  void Read(GlobalStep version, MemberStates* states, std::vector<int> members,
            Callback<ReplicaState> done);
  // Ends Read, and later ones, with CANCELLED.
  void Cancel();

 private:
  void ReadNext();
  void OnPiece(uint64_t read, absl::StatusOr<StatePiece> piece);
  // Takes the piece. OK with nothing left: the state is whole.
  absl::Status Take(const StatePiece& piece) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Ends the read with `status` when all calls to the members have returned.
  void End(uint64_t read, absl::Status status);
  void TellEnd();

  const VariableLayout& layout_;
  const OptimizerRules& rules_;
  Timer* const timer_;
  const Clock* const clock_;
  const TensorMaker make_tensor_;
  const std::shared_ptr<Gate> gate_;  // held by calls in flight and the timer
  absl::Mutex mutex_;
  bool is_cancelled_ ABSL_GUARDED_BY(mutex_) = false;
  uint64_t read_ ABSL_GUARDED_BY(mutex_) = 0;  // counts Read: answers of an earlier one are ignored
  MemberStates* states_ ABSL_GUARDED_BY(mutex_) = nullptr;
  std::vector<int> members_ ABSL_GUARDED_BY(mutex_);
  size_t member_ ABSL_GUARDED_BY(mutex_) = 0;        // of members_, is asked
  uint64_t offset_ ABSL_GUARDED_BY(mutex_) = 0;      // up to which it has answered
  absl::Duration deadline_ ABSL_GUARDED_BY(mutex_);  // for the next piece
  ReplicaState state_ ABSL_GUARDED_BY(mutex_);
  std::vector<MutableTensorView> tensors_ ABSL_GUARDED_BY(mutex_);
  int calls_ ABSL_GUARDED_BY(mutex_) = 0;                    // of ReadState that have not returned
  std::optional<absl::Status> end_ ABSL_GUARDED_BY(mutex_);  // of the read, still to be told
  Callback<ReplicaState> done_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker
