// A tower with everything it reads and writes, to be measured beside other systems.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "worker/ops/precision.h"
#include "worker/tower/batch_rows.h"
#include "worker/tower/tower_group.h"

namespace lockstep::bench {

struct TowerModel {
  ModelGraph graph;
  int64_t batch = 0;
  worker::Precision precision = worker::Precision::kFloat32;
};

// The model of this job's file, its precision, and the batch of one of its towers.
absl::StatusOr<TowerModel> LoadTowerModel(const std::string& job_file);

// Not thread-safe.
class TowerSide {
 public:
  // With random numbers as input, indices of rows among them. `ops` are the device's.
  static absl::StatusOr<std::unique_ptr<TowerSide>> Create(const TowerModel& model,
                                                           std::shared_ptr<worker::Device> device,
                                                           const worker::OpTable& ops);

  // That so many steps take: values to the device, forward, backward, gradients to the host.
  absl::StatusOr<double> SecondsFor(int64_t steps);

 private:
  void FillBatch(const TowerModel& model);
  // Of tables the rows that the batch reads, of the rest all.
  void FillVariables(const ModelGraph& graph);

  std::shared_ptr<worker::Device> device_;
  std::unique_ptr<worker::TowerGroup> towers_;
  worker::Batch batch_;
  std::optional<worker::BatchRows> rows_;
  std::vector<Tensor> variables_;
  std::vector<Tensor> gradients_;
  std::vector<TensorView> variable_views_;
  std::vector<MutableTensorView> gradient_views_;
};

}  // namespace lockstep::bench
