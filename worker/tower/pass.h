// A model ready to run on one device for one batch size: ops, activations, gradients.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/device/device.h"
#include "worker/ops/op_factory.h"
#include "worker/tower/schedule.h"
#include "worker/tower/variable_values.h"

namespace lockstep::worker {

struct PassOptions {
  int64_t batch = 1;
  bool training = true;  // false: no memory for gradients; activations share theirs
};

// Not thread-safe; the calling thread has made the device current. Calls allocate nothing.
// `variables` and `gradients` are in the order of graph.variables().
class Pass {
 public:
  // All arguments outlive the pass.
  static absl::StatusOr<std::unique_ptr<Pass>> Create(const ModelGraph& graph,
                                                      const Schedule& schedule,
                                                      const Device& device, OpFactory& factory,
                                                      const PassOptions& options);

  int64_t batch() const { return options_.batch; }
  Loss& loss() { return *loss_; }

  // Up to what the loss reads, which is returned and valid until the next call. `features` must
  // stay until Backward is done.
  TensorView Forward(Mode mode, TensorView features, const VariableValues& variables,
                     uint64_t random_key);

  // Where the loss puts its gradient; data null when the model has nothing to train.
  MutableTensorView scores_gradient() const { return scores_gradient_; }

  // After Forward in training mode, with the same variables, and with scores_gradient filled in.
  // Calls `ready` with the variables of each op that is not frozen, from the last to the first,
  // when their gradients or new values are complete.
  void Backward(std::span<const MutableTensorView> gradients,
                const std::function<void(std::span<const int> variables)>& ready);

 private:
  // A gradient that arrives after another one for the same value and is added to it.
  struct Contribution {
    size_t input = 0;  // of the op: where the gradient was computed
    MutableTensorView sum;
    std::unique_ptr<Op> add;
  };
  struct Step {
    std::unique_ptr<Op> op;
    std::vector<TensorView> inputs;
    std::vector<size_t> feature_inputs;  // which of them are the batch itself
    std::vector<int> variable_ids;
    std::vector<int> ready_ids;                  // from the last to the first
    std::vector<TensorView> variables;           // of the last Forward
    std::vector<std::span<const int64_t>> rows;  // that the tables among them hold
    MutableTensorView output;
    MutableTensorView output_gradient;
    std::vector<MutableTensorView> input_gradients;
    std::vector<Contribution> contributions;
    std::vector<MutableTensorView> variable_gradients;
  };

  Pass(const PassOptions& options, size_t num_ops)
      : options_(options), memory_(nullptr, [](std::byte*) {}), steps_(num_ops) {}

  absl::Status PlaceBuffers(const ModelGraph& graph, const Schedule& schedule,
                            const Device& device);
  absl::Status MakeOps(const ModelGraph& graph, const Schedule& schedule, OpFactory& factory);

  const PassOptions options_;
  DeviceMemory memory_;
  std::vector<Step> steps_;
  std::unique_ptr<Loss> loss_;
  TensorView scores_;
  bool scores_are_features_ = false;
  MutableTensorView scores_gradient_;
};

}  // namespace lockstep::worker
