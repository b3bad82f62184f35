// The step runner trains over a strategy that it has never heard of.
#include "tests/extend/strategy/local_strategy.h"

#include <catch2/catch.hpp>

#include "absl/strings/str_cat.h"
#include "common/config/text_proto.h"
#include "tests/support/temporary_folder.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/cpu/ops.h"
#include "worker/step/step_runner.h"
#include "worker/tower/tower_group.h"

namespace lockstep::extend {
namespace {

constexpr int64_t kSteps = 40;
constexpr int64_t kBatch = 8;

constexpr char kModel[] = R"(
  input_shape: [2]
  layers { name: "hidden" dense { units: 6 } }
  layers { name: "relu" relu {} }
  layers { name: "scores" dense { units: 2 } }
  layers { name: "loss" softmax_cross_entropy {} })";

TEST_CASE("a replica trains with a strategy that applies its gradients without a ps") {
  ModelDef model;
  REQUIRE(ParseTextProto("test", kModel, &model).ok());
  const ModelGraph graph = *ModelGraph::Build(model);
  Placement placement;
  placement.set_shards(1);
  for (const ModelVariable& variable : graph.variables()) {
    VariableSpec* const spec = placement.add_variables();
    spec->set_name(variable.name);
    spec->set_id(static_cast<uint32_t>(placement.variables_size() - 1));
    spec->set_dtype(FLOAT32);
    for (const int64_t dim : variable.shape.dims()) spec->add_dims(dim);
    spec->set_trainable(variable.trainable);
  }
  const worker::VariableLayout layout = *worker::VariableLayout::Create(placement);

  test::TemporaryFolder folder;
  std::string csv;
  for (int i = 0; i < 64; ++i) absl::StrAppend(&csv, i % 2, ",", i % 5, ",", i % 2, "\n");
  folder.Write("train.csv", csv);
  DataDef data;
  data.set_scale(1);
  data.mutable_csv()->add_train(folder.Path("train.csv"));
  data.mutable_csv()->set_label_column("2");
  data.mutable_csv()->set_no_header(true);
  const auto pipeline = worker::Pipeline::Open(
      data, {graph.input_shape(), graph.is_classifier(), graph.num_outputs()},
      {.batch_per_tower = kBatch});
  REQUIRE(pipeline.ok());
  worker::CpuDevice device(1);
  const auto towers =
      worker::TowerGroup::Create(graph, &device, worker::cpu::Ops(), {.batch_per_tower = kBatch});
  REQUIRE(towers.ok());

  LocalStrategy strategy(graph, {.seed = 3, .learning_rate = 0.1f, .steps = kSteps});
  worker::BatchRows rows(graph);
  worker::Progress progress;
  worker::StepRunner runner({}, layout, &strategy, {towers->get()}, pipeline->get(), &rows,
                            &progress);
  const absl::Status end = runner.Run();
  INFO(end);
  CHECK(end.ok());
  REQUIRE(strategy.losses().size() == kSteps);
  CHECK(strategy.losses().back() < 0.8f * strategy.losses().front());
  // The runner predicted every next step, and named each variable once in every step.
  CHECK(strategy.predicted().size() == kSteps);
  CHECK(progress.Report().accepted == kSteps * graph.variables().size());
  CHECK(progress.Report().done);
}

}  // namespace
}  // namespace lockstep::extend
