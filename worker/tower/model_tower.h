// The Tower that computes the model.
#pragma once

#include <memory>
#include <span>
#include <vector>

#include "worker/tower/pass.h"
#include "worker/tower/row_lists.h"
#include "worker/tower/staging.h"
#include "worker/tower/step_graphs.h"
#include "worker/tower/tower.h"

namespace lockstep::worker {

class ModelTower : public Tower {
 public:
  ModelTower(const ModelGraph& graph, Device* device, const OpTable& ops,
             const TowerOptions& options);
  // Once, before the rest.
  absl::Status Prepare();

  absl::StatusOr<std::span<const TowerGradient>> Train(const Batch& batch,
                                                       const VariableValues& variables,
                                                       std::span<const MutableTensorView> gradients,
                                                       uint64_t random_key) override;
  absl::Status Finish() override;
  float loss() const override { return results_.loss.as<float>()[0]; }
  absl::StatusOr<Evaluation> Evaluate(const Batch& batch, const VariableValues& variables) override;
  absl::StatusOr<TensorView> Predict(const Batch& batch, const VariableValues& variables,
                                     uint64_t random_key) override;

 private:
  // Where each tensor of the host lies on the device.
  struct Places {
    std::vector<int> inputs;  // features, then state inputs
    int labels = 0;
    int random_key = 0;
    int sums = 0;
    int predictions = 0;
    std::vector<int> values;  // by variable
    std::vector<int> gradients;
  };

  // What the stream reads of the last call, by variable.
  struct Call {
    std::vector<TensorView> inputs;  // features, then state inputs
    TensorView labels;
    uint64_t random_key = 0;
    TensorView random_key_on_device;
    std::vector<TensorView> values;
    std::vector<MutableTensorView> gradient_views;
    std::vector<TowerGradient> gradients;
    std::vector<const void*> addresses;  // that differ between steps
  };
  // In host memory that the device copies to.
  struct Results {
    DeviceBuffer memory;
    MutableTensorView sums;
    MutableTensorView loss;
    MutableTensorView predictions;
  };

  // Returns what the values of each variable take.
  std::vector<size_t> AddPlaces();
  // By variable, of how many rows of a table a call can list.
  std::vector<int64_t> MostListedRows() const;
  Shape PredictionsOf(int64_t examples) const;
  absl::Status AllocateResults();
  absl::Status MakePasses();
  absl::Status MakeEvents();
  // The pass for a batch of this size.
  absl::StatusOr<Pass*> PassFor(int64_t size);
  // What ops read: rows that the device has, or a copy of the batch's.
  absl::Status BringInputs(const Batch& batch);
  absl::StatusOr<TensorView> LabelsOf(const Batch& batch);
  // Rows that the device has: where they are, or in `place` where that varies.
  absl::StatusOr<TensorView> BringLoaded(const LoadedRows& rows, int place, const TensorView& view);
  // All that a forward pass reads.
  absl::Status BringOperands(const Batch& batch, const VariableValues& variables,
                             uint64_t random_key);
  // Enqueues the forward pass over what was brought.
  absl::Status Forward(Pass* pass, Mode mode);
  absl::Status EnqueueStep(Pass* pass);
  // The same, or launches it as a graph.
  absl::Status EnqueueOrLaunchStep(Pass* pass);
  // The work of Evaluate and of Predict, up to the copy of its results to the host.
  absl::Status EnqueueEvaluation(Pass* pass, const Batch& batch, const VariableValues& variables);
  absl::Status EnqueuePrediction(Pass* pass, const Batch& batch, const VariableValues& variables,
                                 uint64_t random_key, const MutableTensorView& predictions);
  // Waits for what was enqueued, also after an error. Returns the first error.
  absl::Status FinishAfter(absl::Status enqueued);

  const ModelGraph graph_;
  const TowerOptions options_;
  const TowerSchedule schedule_;
  Device* const device_;
  const OpTable& ops_;
  std::unique_ptr<OpContext> context_;
  Staging staging_;
  Places places_;
  std::vector<int64_t> most_rows_;  // by variable: of a table, that values hold
  RowLists row_lists_;
  DeviceBuffer memory_;                        // of all passes
  std::vector<std::unique_ptr<Pass>> passes_;  // by options_.batches
  Call call_;
  Results results_;
  std::vector<std::unique_ptr<Event>> complete_;  // by variable: the last one of a layer
  std::unique_ptr<Event> finished_;
  StepGraphs graphs_;
  std::unique_ptr<Stream> stream_;  // last: uses all above
};

}  // namespace lockstep::worker
