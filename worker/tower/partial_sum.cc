#include "worker/tower/partial_sum.h"

#include "common/base/status_macros.h"
#include "worker/ops/add.h"

namespace lockstep::worker {

absl::StatusOr<PartialSum> PartialSum::Create(const TensorView& like, const OpTable& ops,
                                              OpContext* context) {
  const AddOptions options{{.type = like.dtype}, like.num_elements()};
  LOCKSTEP_ASSIGN_OR_RETURN(auto add, ops.Make(context, options));
  return PartialSum(std::move(add));
}

absl::Status PartialSum::Enqueue(const MutableTensorView& sum, const TensorView& term,
                                 Stream* stream) {
  terms_ = {sum, term};
  args_ = {.inputs = terms_, .output = sum};
  return add_->Forward(args_, stream);
}

}  // namespace lockstep::worker
