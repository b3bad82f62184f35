// A tower: the model on one device, with memory for one batch size planned once. Forward and
// backward.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/data/batch.h"

namespace lockstep::worker {

struct TowerOptions {
  int64_t batch = 0;     // largest batch that will be given
  int threads = 1;       // of this tower's ops
  bool training = true;  // false: forward only, no memory for gradients
};

// Not thread-safe: one call at a time. Steady-state calls allocate nothing.
class Tower {
 public:
  // INVALID_ARGUMENT for options that make no sense; RESOURCE_EXHAUSTED where memory is short.
  static absl::StatusOr<std::unique_ptr<Tower>> Create(const ModelGraph& graph,
                                                       const TowerOptions& options);
  virtual ~Tower() = default;

  // Called on the computing thread as soon as the gradient of variable i (index into
  // graph.variables()) is final: once for each variable, from the last to the first.
  using GradientReady = std::function<void(int variable)>;

  // One training pass. `variables[i]` is the value of graph.variables()[i]; `gradients[i]` receives
  // d loss / d variable for a trainable one, and the new value of a statistic otherwise (batch
  // norm: momentum * old + (1 - momentum) * batch's; train/loss: the loss). `random_key` seeds
  // dropout: the same key gives the same masks. Returns the mean loss over the batch.
  virtual float Train(const Batch& batch, std::span<const TensorView> variables,
                      std::span<const MutableTensorView> gradients, uint64_t random_key,
                      const GradientReady& ready) = 0;

  struct Evaluation {
    int64_t examples = 0;
    int64_t correct = 0;  // classifier: argmax equals the label
    double loss_sum = 0;
  };
  // Forward in inference mode (moving statistics, no dropout).
  virtual Evaluation Evaluate(const Batch& batch, std::span<const TensorView> variables) = 0;
  // As Evaluate, without labels: class probabilities (softmax) or outputs, [n, num_outputs]. Valid
  // until the next call.
  virtual TensorView Predict(const Tensor& features, std::span<const TensorView> variables) = 0;
};

}  // namespace lockstep::worker
