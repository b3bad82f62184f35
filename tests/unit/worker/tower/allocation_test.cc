// A step allocates nothing, apart from what oneDNN does: the models here have none of its ops.
#include <catch2/catch.hpp>

#include "tests/support/allocation_counter.h"
#include "tests/unit/worker/tower/models.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/cpu/ops.h"
#include "worker/tower/tower.h"
#include "worker/tower/tower_group.h"

namespace lockstep::worker {
namespace {

constexpr int kSteps = 50;

constexpr char kTables[] = R"pb(
  input_shape: [ 7 ]
  layers {
    name: "indices"
    columns { first: 0 count: 3 }
  }
  layers {
    name: "wide"
    embedding { rows: 11 dim: 4 combiner: SUM }
  }
  layers {
    name: "deep"
    embedding { rows: 11 dim: 2 combiner: SUM }
    inputs: "indices"
  }
  layers {
    name: "numbers"
    columns { first: 3 count: 2 }
    inputs: "input"
  }
  layers {
    name: "joined"
    concatenate {}
    inputs: [ "deep", "numbers" ]
  }
  layers {
    name: "drop"
    dropout { rate: 0.5 }
  }
  layers {
    name: "sum"
    add {}
    inputs: [ "wide", "drop" ]
  }
  layers {
    name: "loss"
    softmax_cross_entropy {}
  }
)pb";

TEST_CASE("training allocates nothing, on one tower or several, clipped or not") {
  const ModelGraph graph = GraphOf(kTables);
  for (const int towers : {1, 2}) {
    for (const char* const clips : {"", "norm", "global norm"}) {
      CAPTURE(towers, clips);
      CpuDevice device(1);
      ReducerOptions options{.towers = towers};
      if (*clips != 0) options.ps_device = StrategyDef::ParameterServer::GPU;
      if (clips == absl::string_view("norm")) options.clipping.set_norm(0.1f);
      if (clips == absl::string_view("global norm")) options.clipping.set_global_norm(0.1f);
      const auto group = *TowerGroup::Create(graph, &device, cpu::Ops(),
                                             {.batch_per_tower = 4, .reducer = options});
      std::vector<Batch> batches;
      for (int t = 0; t < towers; ++t) batches.push_back(BatchOf(graph, 4, 4 * t));
      Operands operands(graph);
      int announced = 0;
      const TowerGroup::GradientReady ready = [&](std::span<const int> variables) {
        announced += static_cast<int>(variables.size());
      };
      bool all_well = true;
      const auto train = [&] {
        all_well &=
            group->Train(batches, {operands.variable_views}, operands.gradient_views, 1, ready)
                .ok();
      };
      for (int i = 0; i < 3; ++i) train();
      const test::Allocations made = test::AllocationsOf([&] {
        for (int i = 0; i < kSteps; ++i) train();
      });
      CHECK(all_well);
      CHECK(announced == (kSteps + 3) * static_cast<int>(graph.variables().size()));
      CHECK(made.all == 0);
    }
  }
}

TEST_CASE("evaluation allocates nothing") {
  const ModelGraph graph = GraphOf(kTables);
  CpuDevice device(1);
  const auto tower =
      *Tower::Create(graph, &device, cpu::Ops(), {.batches = {6, 2}, .training = false});
  const Batch large = BatchOf(graph, 6);
  const Batch small = BatchOf(graph, 2);
  Operands operands(graph);
  int64_t examples = 0;
  const auto evaluate = [&] {
    examples += tower->Evaluate(large, {operands.variable_views})->examples;
    examples += tower->Evaluate(small, {operands.variable_views})->examples;
  };
  evaluate();
  CHECK(test::AllocationsOf(evaluate).all == 0);
  CHECK(examples == 16);
}

}  // namespace
}  // namespace lockstep::worker
