// Ops on gradients that have been computed: the mean over towers, clipping. Each takes any number
// of elements.
#pragma once

#include <span>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
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

// output = (inputs[0] + inputs[1] + ...) / number of inputs * factor, in this order. The output may
// be the first input.
struct MeanOptions {
  using Made = GradientOp;
  static constexpr absl::string_view kKind = "mean";

  int factor = 1;
};

enum class ClippingKind {
  kValue,       // each element into [-limit, limit]
  kNorm,        // each output to a Euclidean norm of at most `limit`
  kGlobalNorm,  // all outputs, as one vector, to a norm of at most `limit`
};

// Clips the outputs, in place.
struct ClippingOptions {
  using Made = GradientOp;
  static constexpr absl::string_view kKind = "clipping";

  ClippingKind kind = ClippingKind::kValue;
  float limit = 0;
};

}  // namespace lockstep::worker
