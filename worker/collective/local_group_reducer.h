// The GroupReducer of one worker: all towers are in this process.
#pragma once

#include <atomic>
#include <memory>
#include <vector>

#include "absl/base/call_once.h"
#include "absl/status/statusor.h"
#include "worker/collective/group_reducer.h"
#include "worker/collective/local_participants.h"
#include "worker/collective/reduction_layout.h"

namespace lockstep::worker {

// Reduce works on the caller's thread and calls `done` before it returns; Cancel acts on the next
// one. Calls allocate nothing after the first Reduce.
class LocalGroupReducer final : public GroupReducer {
 public:
  // INVALID_ARGUMENT: several workers; a plan that is not of the tensors.
  static absl::StatusOr<std::unique_ptr<LocalGroupReducer>> Create(GroupReduction reduction);

  MutableTensorView tensor(int tower, int i) const override;
  void Reduce(int64_t step, absl::Span<const std::vector<TensorView>> gradients,
              StatusCallback done) override;
  void Cancel(absl::Status reason) override;
  GroupTraffic traffic() const override;

 private:
  LocalGroupReducer(GroupReduction reduction, ReductionLayout layout);

  const GroupReduction reduction_;
  const ReductionLayout layout_;
  std::vector<Tensor> memory_;                  // of each tower
  std::vector<std::byte*> addresses_;           // of it
  std::vector<LocalParticipants> vectors_;      // of each vector
  std::vector<LocalParticipants::Send> sends_;  // these two stay empty: there is nobody else
  std::vector<MessageId> consumed_;
  std::vector<const void*> first_;  // of the vector at hand, by tower
  absl::once_flag cancel_once_;
  absl::Status failure_;  // of the first Cancel, which writes it before `is_cancelled_`
  std::atomic<bool> is_cancelled_ = false;
};

}  // namespace lockstep::worker
