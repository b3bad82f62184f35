// Adds a tensor that was computed beside another one to that one.
#pragma once

#include <array>
#include <cstdint>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/tensor/tensor.h"
#include "worker/ops/op.h"
#include "worker/ops/op_table.h"

namespace lockstep::worker {

// Stays where it is until the stream has passed what was enqueued; one Enqueue at a time.
class PartialSum {
 public:
  // Of tensors with the type and the number of elements of this one. `context` outlives the sum.
  static absl::StatusOr<PartialSum> Create(const TensorView& like, const OpTable& ops,
                                           OpContext* context);

  // sum = sum + term.
  absl::Status Enqueue(const MutableTensorView& sum, const TensorView& term, Stream* stream);

 private:
  explicit PartialSum(std::unique_ptr<Op> add) : add_(std::move(add)) {}

  std::unique_ptr<Op> add_;
  std::array<TensorView, 2> terms_;
  Op::ForwardArgs args_;
};

}  // namespace lockstep::worker
