// The end of a model: what its outputs are worth against the labels. Unlike an Op it answers the
// host.
#pragma once

#include <cstdint>

#include "common/tensor/tensor.h"

namespace lockstep::worker {

enum class LossKind {
  kSoftmaxCrossEntropy,  // labels int32 [batch], 0 <= label < outputs
  kL2,                   // sum (y - target)^2 / 2; labels float32 [batch, outputs]
};

struct LossOptions {
  LossKind kind = LossKind::kSoftmaxCrossEntropy;
  int64_t batch = 1;
  int64_t outputs = 1;
};

// Not thread-safe; the calling thread has made the device current. Calls allocate nothing.
class Loss {
 public:
  virtual ~Loss() = default;

  // The mean over the batch; `gradient` (data null: not wanted) receives d mean / d outputs.
  virtual double Train(TensorView outputs, TensorView labels, MutableTensorView gradient) = 0;

  struct Sums {
    double loss = 0;
    int64_t correct = 0;  // examples whose largest output (the first of equals) is their label's
  };
  virtual Sums Evaluate(TensorView outputs, TensorView labels) = 0;

  // Softmax of the outputs, or the outputs themselves, into host memory.
  virtual void Predict(TensorView outputs, MutableTensorView predictions) = 0;
};

}  // namespace lockstep::worker
