#include "worker/tower/replicated_towers.h"

#include <catch2/catch.hpp>
#include <utility>
#include <vector>

#include "tests/support/test_device.h"
#include "tests/unit/worker/tower/models.h"
#include "tests/unit/worker/tower/test_tower.h"
#include "worker/tower/tower_memory.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kBatch = 4;  // enough to look up every row of a table

TEST_CASE("replicated towers each compute what a tower alone does with the same variables") {
  for (const char* const model : {kResidual, kSequences, kWideAndDeep}) {
    const ModelGraph graph = GraphOf(model);
    TestGroup alone(graph, {.batch_per_tower = kBatch});
    for (const auto& [towers, count] : {std::pair(1, 1), {3, 1}, {3, 2}}) {
      INFO(model << ", towers " << towers << ", devices " << count);
      const auto devices = test::MakeTestDevices(count);
      const auto replicated =
          *ReplicatedTowers::Create(graph, test::TowersOn(devices), test::OpsOfTestDevice(),
                                    {.towers = towers, .batch_per_tower = kBatch});
      std::vector<Batch> batches;
      std::vector<Operands> operands;
      std::vector<TowerMemory> memory;
      for (int t = 0; t < towers; ++t) {
        batches.push_back(BatchOf(graph, kBatch, t * kBatch));
        Operands& own = operands.emplace_back(graph);
        for (Tensor& variable : own.variables) {
          for (float& value : variable.as<float>()) value *= 1 + 0.25f * static_cast<float>(t);
        }
      }
      for (const Operands& own : operands) {
        memory.push_back({{own.variable_views}, own.gradient_views});
      }
      std::vector<int> announced;
      const float loss =
          *replicated->TrainStep(batches, memory, 7, [&](std::span<const int> ready) {
            announced.insert(announced.end(), ready.begin(), ready.end());
          });
      float sum = 0;
      for (int t = 0; t < towers; ++t) {
        Operands wanted(graph);
        sum += *alone->Train({&batches[t], 1}, {operands[t].variable_views}, wanted.gradient_views,
                             7, [](std::span<const int>) {});
        for (const int v : announced) {
          INFO("tower " << t << ", " << graph.variables()[v].name);
          CHECK(SameBits(operands[t].gradients[v], wanted.gradients[v]));
        }
      }
      CHECK(loss == Approx(sum / static_cast<float>(towers)));
      CHECK(announced.size() == graph.variables().size());
    }
  }
}

}  // namespace
}  // namespace lockstep::worker
