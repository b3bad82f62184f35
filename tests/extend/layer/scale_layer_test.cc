#include <google/protobuf/text_format.h>

#include <catch2/catch.hpp>
#include <string>

#include "common/model/graph.h"
#include "common/model/initial_value.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/cpu/ops.h"
#include "worker/tower/tower_group.h"

namespace lockstep::extend {
namespace {

absl::StatusOr<ModelGraph> GraphWith(const std::string& scale) {
  ModelDef model;
  const std::string text =
      "input_shape: [3] layers { name: 'hidden' dense { units: 4 } }"
      "layers { name: 'scale' custom { " +
      scale + " } } layers { name: 'out' dense { units: 2 } } layers { name: 'loss' l2_loss {} }";
  REQUIRE(google::protobuf::TextFormat::ParseFromString(text, &model));
  return ModelGraph::Build(model);
}

// One tower of the model with what it reads and writes.
struct Model {
  explicit Model(const ModelGraph& graph)
      : towers(*worker::TowerGroup::Create(graph, &device, worker::cpu::Ops(),
                                           {.batch_per_tower = 2})) {
    for (const ModelVariable& variable : graph.variables()) {
      values.emplace_back(variable.dtype, variable.shape);
      FillInitialValue(variable.initializer, 1, variable.name, values.back().view());
      gradients.emplace_back(variable.dtype, variable.shape);
    }
    for (const Tensor& value : values) value_views.push_back(value.view());
    for (Tensor& gradient : gradients) gradient_views.push_back(gradient.view());
    batch.features = Tensor(DType::kFloat32, {2, 3});
    for (int i = 0; i < 6; ++i) batch.features.as<float>()[i] = 0.5f * static_cast<float>(i) - 1;
    batch.labels = Tensor::Zeros(DType::kFloat32, {2, 2});
  }

  float Train() {
    return towers->Train({&batch, 1}, {value_views}, gradient_views, 1, [](std::span<const int>) {})
        .value();
  }

  worker::CpuDevice device{1};
  std::unique_ptr<worker::TowerGroup> towers;
  std::vector<Tensor> values;
  std::vector<Tensor> gradients;
  std::vector<TensorView> value_views;
  std::vector<MutableTensorView> gradient_views;
  worker::Batch batch;
};

TEST_CASE("a layer of another's own has variables, and gradients that fit its loss") {
  const auto graph = GraphWith("type: 'scale' parameters { name: 'factor' number: 2 }");
  REQUIRE(graph.ok());
  Model model(*graph);
  for (size_t v = 0; v < graph->variables().size(); ++v) {
    if (!graph->variables()[v].trainable) continue;
    INFO(graph->variables()[v].name);
    model.Train();
    const float gradient = model.gradients[v].as<float>()[0];
    constexpr float kStep = 1e-2f;
    float& value = model.values[v].as<float>()[0];
    value += kStep;
    const float above = model.Train();
    value -= 2 * kStep;
    const float below = model.Train();
    value += kStep;
    CHECK(gradient == Approx((above - below) / (2 * kStep)).epsilon(1e-2).margin(1e-4));
  }
}

TEST_CASE("a layer of another's own refuses what it does not understand") {
  const absl::Status status = GraphWith("type: 'scale'").status();
  CHECK(absl::IsInvalidArgument(status));
  CHECK_THAT(std::string(status.message()),
             Catch::Contains("\"scale\"") && Catch::Contains("a number \"factor\""));
  const absl::Status unknown = GraphWith("type: 'warp'").status();
  CHECK_THAT(std::string(unknown.message()), Catch::Contains("custom { type: \"scale\" }"));
}

}  // namespace
}  // namespace lockstep::extend
