// The end of a model: what its outputs are worth against the labels.
#pragma once

#include <cstdint>
#include <optional>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "common/tensor/tensor.h"
#include "worker/device/stream.h"

namespace lockstep::worker {

class Loss;

enum class LossKind {
  kSoftmaxCrossEntropy,  // labels int32 [batch], 0 <= label < outputs
  kL2,                   // sum (y - target)^2 / 2; labels float32 [batch, outputs]
  // mean over the outputs of -(target log p + (1 - target) log(1 - p)), p = sigmoid(y); labels as
  // kL2
  kSigmoidCrossEntropy,
};

struct LossOptions {
  using Made = Loss;
  static constexpr absl::string_view kKind = "loss";

  LossKind kind = LossKind::kSoftmaxCrossEntropy;
  int64_t batch = 1;
  int64_t outputs = 1;
  std::optional<float> target = {};  // in place of labels; of kSigmoidCrossEntropy
};

// Enqueues, as an Op does, and with the same rules. Calls allocate nothing.
class Loss {
 public:
  virtual ~Loss() = default;

  struct Args {
    TensorView outputs;
    TensorView labels;           // of Train and Evaluate; not read where there is a target
    MutableTensorView gradient;  // of Train; data null: not wanted
    MutableTensorView result;
  };

  // `result`, float32 [1], receives the mean over the batch, `gradient` d mean / d outputs.
  virtual absl::Status Train(const Args& args, Stream* stream) = 0;

  // `result` as the host sees it, float64 [2]: sums over the batch.
  enum Sums { kLossSum, kCorrect, kNumSums };
  // kCorrect counts the examples whose largest output (the first of equals) is their label's.
  virtual absl::Status Evaluate(const Args& args, Stream* stream) = 0;

  // `result` receives the softmax or the sigmoid of the outputs, or the outputs themselves.
  virtual absl::Status Predict(const Args& args, Stream* stream) = 0;
};

}  // namespace lockstep::worker
