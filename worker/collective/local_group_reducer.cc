#include "worker/collective/local_group_reducer.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/check.h"
#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<std::unique_ptr<LocalGroupReducer>> LocalGroupReducer::Create(
    GroupReduction reduction) {
  if (reduction.topology.workers != 1) {
    return absl::InvalidArgumentError(absl::StrCat("reduction within a worker: expected 1, got ",
                                                   reduction.topology.workers, " workers"));
  }
  LOCKSTEP_ASSIGN_OR_RETURN(ReductionLayout layout,
                            ReductionLayout::Create(reduction.tensors, reduction.plan.packing));
  return std::unique_ptr<LocalGroupReducer>(
      new LocalGroupReducer(std::move(reduction), std::move(layout)));
}

LocalGroupReducer::LocalGroupReducer(GroupReduction reduction, ReductionLayout layout)
    : reduction_(std::move(reduction)), layout_(std::move(layout)) {
  const int towers = reduction_.topology.towers;
  for (int tower = 0; tower < towers; ++tower) {
    Tensor& memory =
        memory_.emplace_back(DType::kUInt8, Shape({static_cast<int64_t>(layout_.num_bytes())}));
    addresses_.push_back(static_cast<std::byte*>(memory.data()));
  }
  const int divisor = reduction_.average ? towers : 1;
  for (int v = 0; v < layout_.num_vectors(); ++v) {
    vectors_.emplace_back(&reduction_.plan.schedules[v], 0, layout_.VectorOf(v, addresses_),
                          divisor);
  }
}

MutableTensorView LocalGroupReducer::tensor(int tower, int i) const {
  return layout_.tensor(i, addresses_[tower]);
}

void LocalGroupReducer::Reduce(int64_t, absl::Span<const std::vector<TensorView>> gradients,
                               StatusCallback done) {
  if (is_cancelled_.load(std::memory_order_acquire)) return done(failure_);
  for (int v = 0; v < layout_.num_vectors(); ++v) {
    LocalParticipants& vector = vectors_[v];
    first_.clear();
    if (vector.MayBeginElsewhere()) layout_.FindGradients(v, gradients, &first_);
    if (first_.empty()) layout_.CopyGradients(v, gradients, addresses_, /*first_rank=*/0);
    vector.Restart(first_);
    vector.Advance(&sends_, &consumed_);
    LOCKSTEP_CHECK(vector.is_done());
  }
  done(absl::OkStatus());
}

void LocalGroupReducer::Cancel(absl::Status reason) {
  LOCKSTEP_CHECK(!reason.ok());
  absl::call_once(cancel_once_, [&] {
    failure_ = std::move(reason);
    is_cancelled_.store(true, std::memory_order_release);
  });
}

GroupTraffic LocalGroupReducer::traffic() const {
  GroupTraffic traffic;
  for (const LocalParticipants& vector : vectors_) {
    traffic.within.messages += vector.sent_within().messages;
    traffic.within.elements += vector.sent_within().elements;
  }
  return traffic;
}

}  // namespace lockstep::worker
