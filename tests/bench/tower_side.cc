#include "tests/bench/tower_side.h"

#include <utility>

#include "common/base/clock.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"
#include "common/config/job.h"
#include "common/model/index_columns.h"
#include "common/model/initial_value.h"
#include "worker/device/pinned_tensor.h"
#include "worker/tower/precision_of.h"

namespace lockstep::bench {

absl::StatusOr<TowerModel> LoadTowerModel(const std::string& job_file) {
  LOCKSTEP_ASSIGN_OR_RETURN(LoadedJob loaded, LoadJob(job_file));
  LOCKSTEP_RETURN_IF_ERROR(ValidateJob(&loaded.job, loaded.job.local().workers()));
  TowerModel model;
  LOCKSTEP_ASSIGN_OR_RETURN(model.graph, ModelGraph::Build(loaded.model));
  model.batch = loaded.job.batch_per_tower();
  model.precision = worker::PrecisionOf(loaded.job);
  return model;
}

absl::StatusOr<std::unique_ptr<TowerSide>> TowerSide::Create(const TowerModel& model,
                                                             std::shared_ptr<worker::Device> device,
                                                             const worker::OpTable& ops) {
  auto side = std::make_unique<TowerSide>();
  side->device_ = std::move(device);
  LOCKSTEP_ASSIGN_OR_RETURN(side->towers_,
                            worker::TowerGroup::Create(model.graph, side->device_.get(), ops,
                                                       {.batch_per_tower = model.batch}));
  side->FillBatch(model);
  side->FillVariables(model.graph);
  return side;
}

void TowerSide::FillBatch(const TowerModel& model) {
  std::vector<int64_t> dims = {model.batch};
  for (int64_t extent : model.graph.input_shape().dims()) dims.push_back(extent);
  batch_.features =
      worker::PinnedTensors(device_.get())(DType::kFloat32, Shape(absl::MakeConstSpan(dims)));
  const std::span<float> features = batch_.features.as<float>();
  const Philox generator(1, "features");
  uint64_t counter = 0;
  for (float& number : features) number = UniformFloat(generator.At(counter++)[0]);
  const auto columns = static_cast<int64_t>(features.size()) / model.batch;
  for (const IndexColumns& index : IndexColumnsOf(model.graph)) {
    for (int64_t i = 0; i < model.batch * index.columns.count; ++i) {
      const int64_t column = index.columns.first + i % index.columns.count;
      features[i / index.columns.count * columns + column] =
          static_cast<float>(generator.At(counter++)[0] % static_cast<uint64_t>(index.rows));
    }
  }
  batch_.labels = Tensor(DType::kInt32, Shape({model.batch}));
  for (int64_t i = 0; i < model.batch; ++i) {
    batch_.labels.as<int32_t>()[i] = static_cast<int32_t>(i % model.graph.num_outputs());
  }
}

void TowerSide::FillVariables(const ModelGraph& graph) {
  const TensorMaker make = worker::PinnedTensors(device_.get());
  rows_.emplace(graph);
  rows_->Collect({&batch_, 1});
  for (size_t i = 0; i < graph.variables().size(); ++i) {
    const ModelVariable& variable = graph.variables()[i];
    const auto rows = static_cast<int64_t>(rows_->rows()[i].size());
    const Shape shape = rows > 0 ? worker::MostOf(variable, rows) : variable.shape;
    Tensor& value = variables_.emplace_back(make(variable.dtype, shape));
    FillInitialRows(variable.initializer, 1, variable.name, variable.shape, 0, value.view());
    gradients_.push_back(make(variable.dtype, shape));
  }
  for (Tensor& variable : variables_) variable_views_.push_back(variable.view());
  for (Tensor& gradient : gradients_) gradient_views_.push_back(gradient.view());
}

absl::StatusOr<double> TowerSide::SecondsFor(int64_t steps) {
  const absl::Duration start = Clock::Real()->Monotonic();
  for (int64_t i = 0; i < steps; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(towers_
                                 ->Train({&batch_, 1}, {variable_views_, rows_->rows()},
                                         gradient_views_, 1, [](std::span<const int>) {})
                                 .status());
  }
  return absl::ToDoubleSeconds(Clock::Real()->Monotonic() - start);
}

}  // namespace lockstep::bench
