// A tower: the model on one device, with memory for its batch sizes planned once. Forward and
// backward.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/data/batch.h"
#include "worker/device/device.h"
#include "worker/ops/op_table.h"
#include "worker/tower/tower_reducer.h"
#include "worker/tower/variable_values.h"

namespace lockstep::worker {

struct TowerOptions {
  std::vector<int64_t> batches;  // the sizes that will be given; others are refused
  bool training = true;          // false: forward only, no memory for gradients
  // Of how many examples the values of a call hold the rows of tables. 0: of the largest batch.
  int64_t row_examples = 0;
  bool whole_tables = false;   // values may hold tables whole: on a device they take more memory
  bool own_gradients = false;  // not in the caller's memory, even on a host device
  bool background = false;     // StreamOptions::background
};

// Not thread-safe: one call at a time. Calls allocate nothing. They fail where the device does.
class Tower {
 public:
  // INVALID_ARGUMENT for options that make no sense; RESOURCE_EXHAUSTED where memory is short.
  // Device and ops outlive the tower.
  static absl::StatusOr<std::unique_ptr<Tower>> Create(const ModelGraph& graph, Device* device,
                                                       const OpTable& ops,
                                                       const TowerOptions& options);
  virtual ~Tower() = default;

  // Enqueues one training pass; arguments stay as they are until Finish. Returns, by variable,
  // where the gradients will be: d loss / d graph.variables()[i] for a trainable one, and the new
  // value of a statistic otherwise (batch norm: momentum * old + (1 - momentum) * batch's;
  // train/loss: the mean loss over the batch). For a sparse one it has the shape of the variable's
  // view and receives the gradient of those rows, zero for a row that the batch does not look up.
  // For a frozen one nothing is computed: its event is null. They are ready from the last variable
  // to the first, those of a layer with one event. On a host device they are in `gradients`, unless
  // the options say otherwise; `gradients` tell the shapes in any case. `random_key` seeds dropout:
  // the same key gives the same masks.
  virtual absl::StatusOr<std::span<const TowerGradient>> Train(
      const Batch& batch, const VariableValues& variables,
      std::span<const MutableTensorView> gradients, uint64_t random_key) = 0;
  // Waits until all that was enqueued is done, whether or not Train succeeded.
  virtual absl::Status Finish() = 0;
  // The mean loss over the batch of the last Train, once Finish has returned.
  virtual float loss() const = 0;

  struct Evaluation {
    int64_t examples = 0;
    int64_t correct = 0;  // classifier: labels that the argmax equals
    double loss_sum = 0;  // over the labels
  };
  // Forward in inference mode (moving statistics, no dropout). No work of it reads the arguments
  // any more when this returns, also after an error.
  virtual absl::StatusOr<Evaluation> Evaluate(const Batch& batch,
                                              const VariableValues& variables) = 0;
  // As Evaluate; labels are not read: class probabilities (softmax) or outputs, [n *
  // labels_per_example, num_outputs], in host memory. Valid until the next call. `random_key` seeds
  // noise; Evaluate has 0.
  virtual absl::StatusOr<TensorView> Predict(const Batch& batch, const VariableValues& variables,
                                             uint64_t random_key) = 0;
};

}  // namespace lockstep::worker
