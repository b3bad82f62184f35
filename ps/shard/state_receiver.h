// What a copy that was made while the job trains has got of its primary's state: the step at which
// it began, the bytes of each tensor, and whether all have come.
//
// Not thread-safe; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "common/update/byte_ranges.h"
#include "ps/shard/state_tensor.h"

namespace lockstep::ps {

class StateReceiver {
 public:
  // All tensors of the state.
  explicit StateReceiver(std::vector<StateTensor> tensors);

  const std::vector<StateTensor>& tensors() const { return tensors_; }
  // From then on the copy takes means.
  bool has_begun() const { return begin_.has_value(); }
  // Something is missing; or the version before the newest, which workers read until the step
  // between them is committed, was made without the state. `step`: the first that is not closed.
  bool AwaitsState(GlobalStep step) const { return !complete_.has_value() || step <= *complete_; }

  // FAILED_PRECONDITION: it has begun at another step.
  absl::Status Begin(GlobalStep step);
  // Whether pieces of the state at `step` may be written. `now`: the first step that the copy has
  // not closed; `is_untouched`: and of which it has taken nothing. UNAVAILABLE: not yet. ABORTED:
  // no longer. FAILED_PRECONDITION: it has not begun.
  absl::Status CheckStep(GlobalStep step, GlobalStep now, bool is_untouched) const;
  // Bytes [offset, offset + size) of a tensor have come.
  void RecordPiece(size_t tensor, uint64_t offset, uint64_t size);
  // All has been sent, with the state at `step`. FAILED_PRECONDITION naming what has not come.
  absl::Status Complete(GlobalStep step);
  bool is_complete() const { return complete_.has_value(); }

 private:
  std::vector<StateTensor> tensors_;
  std::vector<ByteRanges> arrived_;  // by tensor
  std::optional<GlobalStep> begin_;
  std::optional<GlobalStep> complete_;
};

}  // namespace lockstep::ps
