#include "worker/tower/sum_on_device.h"

#include "common/base/status_macros.h"

namespace lockstep::worker {

absl::StatusOr<SumOnDevice> SumOnDevice::Create(Device* device, const OpTable& ops) {
  device->MakeCurrent();
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<OpContext> context, ops.CreateContext(device));
  LOCKSTEP_ASSIGN_OR_RETURN(std::unique_ptr<GradientOp> op,
                            ops.Make(context.get(), MeanOptions{.count = 1}));
  return SumOnDevice(std::move(context), std::move(op));
}

absl::Status SumOnDevice::Enqueue(Call* call, Stream* stream) const {
  call->args = {call->terms, {&call->sum, 1}};
  return op_->Run(call->args, stream);
}

}  // namespace lockstep::worker
