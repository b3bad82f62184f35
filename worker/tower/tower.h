// A tower: the model on one device, with memory for one batch size planned once. Forward and
// backward.
#pragma once

#include <functional>
#include <memory>
#include <span>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/data/batch.h"
#include "worker/tower/variable_values.h"

namespace lockstep::worker {

struct TowerOptions {
  int64_t batch = 0;     // largest batch that will be given
  int threads = 1;       // of this tower's ops
  bool training = true;  // false: forward only, no memory for gradients
};

// Not thread-safe: one call at a time. Steady-state calls allocate nothing. A call fails where the
// device does.
class Tower {
 public:
  // INVALID_ARGUMENT for options that make no sense; RESOURCE_EXHAUSTED where memory is short.
  static absl::StatusOr<std::unique_ptr<Tower>> Create(const ModelGraph& graph,
                                                       const TowerOptions& options);
  virtual ~Tower() = default;

  // Called on the computing thread as soon as the gradients of these variables (indices into
  // graph.variables()) are final, those of a layer together: each one that is not frozen once, from
  // the last to the first.
  using GradientReady = std::function<void(std::span<const int> variables)>;

  // One training pass. `gradients[i]` receives d loss / d graph.variables()[i] for a trainable one,
  // and the new value of a statistic otherwise (batch norm: momentum * old + (1 - momentum) *
  // batch's; train/loss: the loss). For a sparse one it has the shape of the variable's view and
  // receives the gradient of those rows, zero for a row that the batch does not look up. For a
  // frozen one nothing is computed: its data is null. `random_key` seeds dropout: the same key
  // gives the same masks. Returns the mean loss over the batch.
  virtual absl::StatusOr<float> Train(const Batch& batch, const VariableValues& variables,
                                      std::span<const MutableTensorView> gradients,
                                      uint64_t random_key, const GradientReady& ready) = 0;

  struct Evaluation {
    int64_t examples = 0;
    int64_t correct = 0;  // classifier: argmax equals the label
    double loss_sum = 0;
  };
  // Forward in inference mode (moving statistics, no dropout).
  virtual absl::StatusOr<Evaluation> Evaluate(const Batch& batch,
                                              const VariableValues& variables) = 0;
  // As Evaluate, without labels: class probabilities (softmax) or outputs, [n, num_outputs]. Valid
  // until the next call.
  virtual absl::StatusOr<TensorView> Predict(const Tensor& features,
                                             const VariableValues& variables) = 0;
};

}  // namespace lockstep::worker
