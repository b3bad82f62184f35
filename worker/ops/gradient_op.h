// Ops on gradients that have been computed: the mean over towers, moving averages, clipping. Each
// takes any number of elements.
#pragma once

#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/optimizer/clipping.h"
#include "common/tensor/tensor.h"
#include "worker/device/stream.h"

namespace lockstep::worker {

// Enqueues, as an Op does, and with the same rules.
class GradientOp {
 public:
  virtual ~GradientOp() = default;

  struct Args {
    std::span<const TensorView> inputs;
    std::span<const MutableTensorView> outputs;
  };
  virtual absl::Status Run(const Args& args, Stream* stream) = 0;
};

// output = (inputs[0] + inputs[1] + ...) * (1 / count), in this order. The output may be the first
// input.
struct MeanOptions {
  using Made = GradientOp;
  static constexpr absl::string_view kKind = "mean";

  int count = 0;  // 0: of the inputs
};

// inputs[0] is the value v of a moving average, each further input v_k = momentum * v + (1 -
// momentum) * s_k, an update of it. output = v after all updates, in this order: v = momentum * v +
// (1 - momentum) * s_k. The output may be any of the updates.
struct MovingAverageOptions {
  using Made = GradientOp;
  static constexpr absl::string_view kKind = "moving_average";

  float momentum = 0;
};

// Clips the outputs, in place.
struct ClippingOptions {
  using Made = GradientOp;
  static constexpr absl::string_view kKind = "clipping";

  ClippingRule rule;
  int64_t tensors = 1;  // outputs of a call at most
};

}  // namespace lockstep::worker
