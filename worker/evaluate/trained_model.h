// A model as a checkpoint holds it: its graph, its job and the values of its variables. Nothing
// else is needed to use it.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/checkpoint/checkpoint.h"
#include "common/model/graph.h"
#include "common/tensor/tensor.h"
#include "proto/job.pb.h"
#include "worker/data/pipeline.h"

namespace lockstep::worker {

// Values of graph.variables(), in their order; with `averages`, the moving averages of those that
// have one. DATA_LOSS naming a variable that the checkpoint lacks or has with another shape. The
// loss of the last step is no part of the model: zero where it is missing.
absl::StatusOr<std::vector<Tensor>> LoadVariables(const CheckpointReader& checkpoint,
                                                  const ModelGraph& graph, bool averages = false);

struct TrainedModel {
  // Reads the checkpoint `folder` (see ResolveCheckpoint). Errors name the file.
  static absl::StatusOr<TrainedModel> Load(const std::string& folder);

  // What its data must look like.
  ExampleSpec example_spec() const;

  int64_t step = 0;
  JobDef job;
  ModelGraph graph;
  std::vector<Tensor> variables;
  bool has_averages = false;      // `variables` has moving averages, as the job evaluates them
  std::vector<TensorView> views;  // of `variables`
};

}  // namespace lockstep::worker
