// Sums of tensors that are in memory of one device.
#pragma once

#include <memory>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/tensor.h"
#include "worker/device/device.h"
#include "worker/ops/gradient_op.h"
#include "worker/ops/op_table.h"

namespace lockstep::worker {

// Used by one thread.
class SumOnDevice {
 public:
  // What the work of an Enqueue names: it stays until the stream has passed that. Used again for
  // as many terms, it allocates nothing.
  struct Call {
    std::vector<TensorView> terms;
    MutableTensorView sum;  // may be the first term
    GradientOp::Args args;
  };

  // The device and `ops` outlive it.
  static absl::StatusOr<SumOnDevice> Create(Device* device, const OpTable& ops);

  // Enqueues sum = terms[0] + terms[1] + ..., in this order.
  absl::Status Enqueue(Call* call, Stream* stream) const;

 private:
  SumOnDevice(std::unique_ptr<OpContext> context, std::unique_ptr<GradientOp> op)
      : context_(std::move(context)), op_(std::move(op)) {}

  std::unique_ptr<OpContext> context_;
  std::unique_ptr<GradientOp> op_;
};

}  // namespace lockstep::worker
