// Towers train and evaluate on a device that they have never heard of.
#include "tests/extend/device/eager_device.h"

#include <catch2/catch.hpp>

#include "tests/unit/worker/tower/models.h"
#include "worker/ops/cpu/ops.h"
#include "worker/tower/tower_group.h"

namespace lockstep::extend {
namespace {

using worker::BatchOf;
using worker::Operands;
using worker::TowerGroup;

TEST_CASE("a device of another's own trains to the bits of a CPU") {
  const ModelGraph graph = worker::GraphOf(worker::kResidual);
  for (const int towers : {1, 2}) {
    worker::CpuDevice cpu(1);
    EagerDevice eager;
    std::vector<worker::Batch> batches;
    for (int t = 0; t < towers; ++t) batches.push_back(BatchOf(graph, 3, 3 * t));
    std::vector<Operands> results;
    for (worker::Device* const device :
         {static_cast<worker::Device*>(&cpu), static_cast<worker::Device*>(&eager)}) {
      const auto group = *TowerGroup::Create(graph, device, worker::cpu::Ops(),
                                             {.batch_per_tower = 3, .reducer = {.towers = towers}});
      Operands& operands = results.emplace_back(graph);
      size_t announced = 0;
      CHECK(group
                ->Train(batches, {operands.variable_views}, operands.gradient_views, 1,
                        [&](std::span<const int> variables) { announced += variables.size(); })
                .ok());
      CHECK(announced == graph.variables().size());
    }
    for (size_t v = 0; v < graph.variables().size(); ++v) {
      CHECK(worker::SameBits(results[0].gradients[v], results[1].gradients[v]));
    }
  }
}

TEST_CASE("a device of another's own evaluates as a CPU does") {
  const ModelGraph graph = worker::GraphOf(worker::kRegression);
  worker::CpuDevice cpu(1);
  EagerDevice eager;
  const worker::TowerOptions options{.batches = {4}, .training = false};
  Operands operands(graph);
  const worker::Batch batch = BatchOf(graph, 4);
  const auto on_cpu = *worker::Tower::Create(graph, &cpu, worker::cpu::Ops(), options);
  const auto on_eager = *worker::Tower::Create(graph, &eager, worker::cpu::Ops(), options);
  CHECK(on_cpu->Evaluate(batch, {operands.variable_views})->loss_sum ==
        on_eager->Evaluate(batch, {operands.variable_views})->loss_sum);
}

}  // namespace
}  // namespace lockstep::extend
