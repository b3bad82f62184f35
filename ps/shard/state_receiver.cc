#include "ps/shard/state_receiver.h"

#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::ps {

StateReceiver::StateReceiver(std::vector<StateTensor> tensors)
    : tensors_(std::move(tensors)), arrived_(tensors_.size()) {}

absl::StatusOr<bool> StateReceiver::Begin(GlobalStep step) {
  if (begin_ == step) return false;
  if (!begin_.has_value() || (step > *begin_ && !has_taken_)) {
    begin_ = step;
    return true;
  }
  return absl::FailedPreconditionError(absl::StrCat("the copy has begun at step ", begin_->value(),
                                                    ", not at step ", step.value(),
                                                    ". Remedy: create its variables anew"));
}

absl::Status StateReceiver::CheckStep(GlobalStep step, GlobalStep now, bool is_untouched) const {
  if (!begin_.has_value()) {
    return absl::FailedPreconditionError(
        absl::StrCat("state at step ", step.value(),
                     ": the copy has not begun. Remedy: send the message that begins first"));
  }
  if (step > now) {
    return absl::UnavailableError(absl::StrCat(
        "state at step ", step.value(), ": the copy is at step ", now.value(), ": try again"));
  }
  if (step == now && is_untouched) return absl::OkStatus();
  return absl::AbortedError(absl::StrCat("state at step ", step.value(), ": the copy is at step ",
                                         now.value(),
                                         is_untouched ? "" : ", and has closed variables of it"));
}

void StateReceiver::RecordPiece(size_t tensor, uint64_t offset, uint64_t size) {
  arrived_[tensor].Claim(offset, offset + size);
  has_taken_ = true;
}

absl::Status StateReceiver::Complete(GlobalStep step) {
  for (size_t i = 0; i < tensors_.size(); ++i) {
    const StateTensor& tensor = tensors_[i];
    const uint64_t gap = arrived_[i].FirstGap(0, tensor.num_bytes);
    if (gap == tensor.num_bytes) continue;
    return absl::FailedPreconditionError(
        absl::StrCat("state at step ", step.value(), " is not complete: of \"", tensor.name, "\", ",
                     tensor.num_bytes, " bytes, those from byte ", gap, " on have not come"));
  }
  if (!complete_.has_value()) complete_ = step;
  has_taken_ = true;
  return absl::OkStatus();
}

}  // namespace lockstep::ps
