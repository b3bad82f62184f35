// StateReceiver tracks the state that a copy made during training gets from its primary: the step
// at which it began, the bytes of each tensor, and whether all have arrived.
//
// Not thread-safe; pure.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/base/ids.h"
#include "common/update/byte_ranges.h"
#include "ps/shard/state_tensor.h"

namespace lockstep::ps {

class StateReceiver {
 public:
  // All tensors of the state.
  explicit StateReceiver(std::vector<StateTensor> tensors);

  const std::vector<StateTensor>& tensors() const { return tensors_; }
  // True after Begin; the copy then takes means.
  bool has_begun() const { return begin_.has_value(); }
  // True if state is missing, or if the version before the newest was made without it. Workers read
  // that version until the step between the two is committed. `step`: the first one not closed.
  bool AwaitsState(GlobalStep step) const { return !complete_.has_value() || step <= *complete_; }

  // Returns true if the copy begins here, false if it has begun at this step before. A copy that
  // began at an earlier step, and has taken nothing yet, begins anew: the late message of an
  // earlier sender had begun it. FAILED_PRECONDITION: it has begun at another step.
  absl::StatusOr<bool> Begin(GlobalStep step);
  // The copy may have taken something of a mean.
  void NoteMean() { has_taken_ = true; }
  // OK if pieces of the state at `step` may be written. `now`: the first step that the copy has not
  // closed. `is_untouched`: the copy has taken nothing of `now`. UNAVAILABLE: not yet. ABORTED: no
  // longer. FAILED_PRECONDITION: the state has not begun.
  absl::Status CheckStep(GlobalStep step, GlobalStep now, bool is_untouched) const;
  // Bytes [offset, offset + size) of a tensor have arrived.
  void RecordPiece(size_t tensor, uint64_t offset, uint64_t size);
  // The primary has sent all of the state at `step`. FAILED_PRECONDITION naming missing bytes.
  absl::Status Complete(GlobalStep step);
  bool is_complete() const { return complete_.has_value(); }

 private:
  std::vector<StateTensor> tensors_;
  std::vector<ByteRanges> arrived_;  // by tensor
  std::optional<GlobalStep> begin_;
  std::optional<GlobalStep> complete_;
  bool has_taken_ = false;  // since it began
};

}  // namespace lockstep::ps
