#include "tests/bench/tower_side.h"

#include <utility>

#include "common/base/clock.h"
#include "common/base/philox.h"
#include "common/base/status_macros.h"
#include "common/config/job.h"
#include "common/model/initial_value.h"
#include "worker/device/pinned_tensor.h"

namespace lockstep::bench {

absl::StatusOr<TowerModel> LoadTowerModel(const std::string& job_file) {
  LOCKSTEP_ASSIGN_OR_RETURN(LoadedJob loaded, LoadJob(job_file));
  LOCKSTEP_RETURN_IF_ERROR(ValidateJob(&loaded.job, loaded.job.local().workers()));
  TowerModel model;
  LOCKSTEP_ASSIGN_OR_RETURN(model.graph, ModelGraph::Build(loaded.model));
  model.batch = loaded.job.batch_per_tower();
  return model;
}

absl::StatusOr<std::unique_ptr<TowerSide>> TowerSide::Create(const TowerModel& model,
                                                             std::shared_ptr<worker::Device> device,
                                                             const worker::OpTable& ops) {
  const ModelGraph& graph = model.graph;
  auto side = std::make_unique<TowerSide>();
  side->device_ = std::move(device);
  worker::Device* const own = side->device_.get();
  LOCKSTEP_ASSIGN_OR_RETURN(
      side->towers_, worker::TowerGroup::Create(graph, own, ops, {.batch_per_tower = model.batch}));
  for (const ModelVariable& variable : graph.variables()) {
    Tensor& value =
        side->variables_.emplace_back(worker::PinnedTensor(own, variable.dtype, variable.shape));
    FillInitialValue(variable.initializer, 1, variable.name, value.view());
    side->gradients_.push_back(worker::PinnedTensor(own, variable.dtype, variable.shape));
  }
  for (Tensor& variable : side->variables_) side->variable_views_.push_back(variable.view());
  for (Tensor& gradient : side->gradients_) side->gradient_views_.push_back(gradient.view());

  std::vector<int64_t> dims = {model.batch};
  for (int64_t extent : graph.input_shape().dims()) dims.push_back(extent);
  side->batch_.features =
      worker::PinnedTensor(own, DType::kFloat32, Shape(absl::MakeConstSpan(dims)));
  const Philox generator(1, "features");
  uint64_t counter = 0;
  for (float& pixel : side->batch_.features.as<float>()) {
    pixel = UniformFloat(generator.At(counter++)[0]);
  }
  side->batch_.labels = Tensor(DType::kInt32, Shape({model.batch}));
  for (int64_t i = 0; i < model.batch; ++i) {
    side->batch_.labels.as<int32_t>()[i] = static_cast<int32_t>(i % graph.num_outputs());
  }
  return side;
}

absl::StatusOr<double> TowerSide::SecondsFor(int64_t steps) {
  const absl::Duration start = Clock::Real()->Monotonic();
  for (int64_t i = 0; i < steps; ++i) {
    LOCKSTEP_RETURN_IF_ERROR(towers_
                                 ->Train({&batch_, 1}, {variable_views_}, gradient_views_, 1,
                                         [](std::span<const int>) {})
                                 .status());
  }
  return absl::ToDoubleSeconds(Clock::Real()->Monotonic() - start);
}

}  // namespace lockstep::bench
