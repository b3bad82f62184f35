#include "tests/unit/worker/tower/test_tower.h"

#include <catch2/catch.hpp>
#include <utility>

#include "worker/tower/staging.h"

namespace lockstep::worker {

TestTower::TestTower(const ModelGraph& graph, const TowerOptions& options, int threads)
    : device_(test::MakeTestDevice(threads)) {
  absl::StatusOr<std::unique_ptr<Tower>> tower =
      Tower::Create(graph, device_.get(), test::OpsOfTestDevice(), options);
  INFO(tower.status());
  REQUIRE(tower.ok());
  tower_ = *std::move(tower);
  copies_ = *device_->CreateStream({});
  copied_ = *device_->CreateEvent();
}

float TestTower::Train(const Batch& batch, const VariableValues& variables,
                       std::span<const MutableTensorView> gradients, uint64_t random_key,
                       const TowerGroup::GradientReady& ready) {
  const std::span<const TowerGradient> got =
      tower_->Train(batch, variables, gradients, random_key).value();
  std::vector<int> layer;
  for (int variable = static_cast<int>(got.size()) - 1; variable >= 0; --variable) {
    const TowerGradient& gradient = got[variable];
    if (gradient.ready == nullptr) continue;
    layer.push_back(variable);
    if (variable > 0 && got[variable - 1].ready == gradient.ready) continue;
    copies_->WaitFor(gradient.ready);
    for (const int own : layer) {
      Staging::CopyToHost(got[own].view, gradients[own], copies_.get());
    }
    copies_->Record(copied_.get());
    REQUIRE(copied_->Wait().ok());
    ready(layer);
    layer.clear();
  }
  REQUIRE(tower_->Finish().ok());
  return gradients.back().as<float>()[0];
}

TestGroup::TestGroup(const ModelGraph& graph, const TowerGroupOptions& options, int threads)
    : device(test::MakeTestDevice(threads)) {
  absl::StatusOr<std::unique_ptr<TowerGroup>> made =
      TowerGroup::Create(graph, device.get(), test::OpsOfTestDevice(), options);
  INFO(made.status());
  REQUIRE(made.ok());
  REQUIRE((*made)->size() == options.reducer.towers);
  group = *std::move(made);
}

}  // namespace lockstep::worker
