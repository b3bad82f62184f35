// A model ready to run on one device for one batch size: ops, activations, gradients.
#pragma once

#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/ops/loss.h"
#include "worker/ops/op_table.h"
#include "worker/tower/memory_plan.h"
#include "worker/tower/partial_sum.h"
#include "worker/tower/pass_buffers.h"
#include "worker/tower/schedule.h"

namespace lockstep::worker {

// Not thread-safe. Enqueues on the stream that it is given; calls allocate nothing, and what they
// are given stays unchanged until the stream has passed it. `variables` and `gradients` are in the
// order of graph.variables().
class Pass {
 public:
  Pass(const ModelGraph& graph, const TowerSchedule& schedule, const PassOptions& options);

  int64_t batch() const { return options_.batch; }
  // What the activations and their gradients take.
  size_t memory_bytes() const { return plan_.total; }

  // Once, before the rest: in `memory` of the device. All arguments outlive the pass; several
  // passes that never run at once may share the memory.
  absl::Status Prepare(const ModelGraph& graph, const TowerSchedule& schedule, std::byte* memory,
                       const OpTable& ops, OpContext* context);

  // Up to what the losses read. `inputs`: the features, then the rows of each state input. `rows`:
  // of the tables, as Op::ForwardArgs has them. `random_key`: in memory of the device.
  absl::Status Forward(Mode mode, std::span<const TensorView> inputs,
                       std::span<const TensorView> variables, std::span<const TableRows> rows,
                       const uint64_t* random_key, Stream* stream);

  // What the losses then do, or the one that is evaluated: one of these. `loss` receives their sum;
  // `labels` are not read where the graph uses none.
  absl::Status Train(const TensorView& labels, const MutableTensorView& loss, Stream* stream);
  absl::Status Evaluate(const TensorView& labels, const MutableTensorView& sums, Stream* stream);
  absl::Status Predict(const MutableTensorView& predictions, Stream* stream);

  // After Train, with the same variables. Calls `complete` with the variables of each op that is
  // not frozen, from the last to the first, when the work that completes their gradients or new
  // values has been enqueued. A gradient that several ops contribute to is their sum, in the order
  // of the layers, and complete with the first of them.
  absl::Status Backward(std::span<const MutableTensorView> gradients,
                        absl::FunctionRef<void(std::span<const int> variables)> complete,
                        Stream* stream);

 private:
  // A gradient that arrives after another one for the same value and is added to it.
  struct Contribution {
    size_t input = 0;  // of the op: where the gradient was computed
    MutableTensorView sum;
    std::unique_ptr<PartialSum> add;
  };
  // Beside the gradient of a variable, that of a later op.
  struct SharedGradient {
    int variable = 0;
    TensorView term;
    std::unique_ptr<PartialSum> add;
  };
  // An input of an op that is one of the batch's.
  struct BatchInput {
    size_t input = 0;  // of the op
    ValueId from = 0;
  };
  struct Step {
    std::string layer;  // its name
    std::unique_ptr<Op> op;
    std::vector<TensorView> inputs;
    std::vector<BatchInput> batch_inputs;
    std::vector<int> variable_ids;
    std::vector<int> ready_ids;         // from the last to the first
    std::vector<TensorView> variables;  // of the last Forward
    std::vector<TableRows> rows;        // that the tables among them hold
    MutableTensorView output;
    MutableTensorView output_gradient;
    std::vector<MutableTensorView> input_gradients;
    std::vector<Contribution> contributions;
    std::vector<MutableTensorView> variable_gradients;
    std::vector<MutableTensorView> own_gradients;  // by variable: in place of it; data may be null
    std::vector<SharedGradient> shared;            // in the order of the layers
    // Of the last call, for the stream.
    Op::ForwardArgs forward_args;
    Op::BackwardArgs backward_args;
  };

  struct LossStep {
    int node = 0;
    std::string layer;  // its name
    std::unique_ptr<Loss> loss;
    Loss::Args args;  // of the last call
    TensorView scores;
    std::optional<ValueId> scores_from_batch;
    bool takes_labels = true;
    MutableTensorView gradient;
    MutableTensorView result;  // data null: the caller's
    MutableTensorView sum;     // of the gradients of the same scores; data null: this is it
    std::unique_ptr<PartialSum> add_gradient;
    std::unique_ptr<PartialSum> add_result;
  };

  void PlaceBuffers(const ModelGraph& graph, const TowerSchedule& schedule, std::byte* memory);
  void PlaceLosses(const ModelGraph& graph, const TowerSchedule& schedule, std::byte* memory);
  void PlaceShared(const ModelGraph& graph, const TowerSchedule& schedule, std::byte* memory);
  // A buffer of the plan, or none.
  MutableTensorView ViewOf(int buffer, const Shape& shape, std::byte* memory,
                           DType type = DType::kFloat32) const;
  absl::Status MakeSums(const OpTable& ops, OpContext* context);
  absl::Status MakeOps(const ModelGraph& graph, const TowerSchedule& schedule, const OpTable& ops,
                       OpContext* context);

  // One loss of Train.
  static absl::Status TrainOn(const TensorView& labels, const MutableTensorView& loss,
                              LossStep* step, Stream* stream);
  // What follows the gradients of an op.
  static absl::Status EnqueueSums(Step* step, std::span<const MutableTensorView> gradients,
                                  Stream* stream);

  const PassOptions options_;
  const PassBuffers buffers_;
  const MemoryPlan plan_;
  std::vector<Step> steps_;
  std::vector<LossStep> losses_;
  size_t evaluated_ = 0;  // of them
};

}  // namespace lockstep::worker
