// Steps that a device launches as graphs: they have the bits of steps that it enqueues.
#include <algorithm>
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/reference/layers.h"
#include "tests/support/test_device.h"
#include "tests/unit/worker/tower/group_training.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/cpu/ops.h"

namespace lockstep::worker {
namespace {

const TowerGroup::GradientReady kIgnore = [](std::span<const int>) {};

std::vector<const char*> AllModels() {
  std::vector<const char*> models = Models();
  models.push_back(kRandom);
  return models;
}

// Steps of a model, some of them against those of a group that has enqueued nothing before. How
// many sizes the gradients of later steps have: with more rows they are larger.
size_t CheckSteps(size_t model, int towers, Tables tables) {
  constexpr int kSteps = 7;
  constexpr int kCaptured = 3;  // and launched then
  const ModelGraph graph = GraphOf(AllModels()[model]);
  const auto device = test::MakeTestDevice(/*threads=*/1);
  const bool has_graphs = device->name().starts_with("cuda");
  const ReducerOptions reducer = OptionsOf(towers, model);
  const auto make = [&] {
    return *MakeGroup(graph, device.get(), test::OpsOfTestDevice(), reducer, {kSmallerBatch});
  };
  const auto group = make();
  std::set<int64_t> sizes;
  for (int step = 0; step < kSteps; ++step) {
    CAPTURE(model, towers, step, tables == Tables::kRows);
    const uint64_t before = device->use().graph_launches;
    const std::vector<Tensor> gradients = *TrainStep(group.get(), graph, step, tables);
    const uint64_t launches = device->use().graph_launches - before;
    // The first step of each size is enqueued.
    CHECK(launches == (has_graphs && step >= 2 ? static_cast<uint64_t>(towers) : 0));
    int64_t elements = 0;
    for (const Tensor& gradient : gradients) elements += gradient.num_elements();
    if (step >= 2) sizes.insert(elements);
    if (step != kCaptured && step != kSteps - 1) continue;
    CHECK(AreSame(gradients, *TrainStep(make().get(), graph, step, tables)));
    CHECK(device->use().graph_launches == before + launches);
  }
  return sizes.size();
}

TEST_CASE("a step that is launched as a graph has the bits of one that is enqueued") {
  size_t sizes = 0;
  for (size_t model = 0; model < AllModels().size(); ++model) {
    const ModelGraph graph = GraphOf(AllModels()[model]);
    for (const int towers : {1, 2}) {
      CheckSteps(model, towers, Tables::kWhole);
      if (std::ranges::none_of(graph.variables(), &ModelVariable::sparse)) continue;
      sizes = std::max(sizes, CheckSteps(model, towers, Tables::kRows));
    }
  }
  CHECK(sizes > 2);  // so that graphs of both batch sizes cannot have the same rows each time
}

TEST_CASE("steps on whole tables and on rows of them are launched as graphs of their own") {
  const ModelGraph graph = GraphOf(kWideAndDeep);
  const auto device = test::MakeTestDevice(/*threads=*/1);
  const bool has_graphs = device->name().starts_with("cuda");
  const auto make = [&] {
    return *MakeGroup(graph, device.get(), test::OpsOfTestDevice(), {}, {kSmallerBatch});
  };
  const auto group = make();
  for (int step = 0; step < 12; ++step) {
    CAPTURE(step);
    const Tables tables = step / 2 % 2 == 0 ? Tables::kWhole : Tables::kRows;
    const uint64_t before = device->use().graph_launches;
    const std::vector<Tensor> gradients = *TrainStep(group.get(), graph, step, tables);
    // The first step of each size and kind is enqueued.
    CHECK(device->use().graph_launches - before == (has_graphs && step >= 4 ? 1u : 0u));
    CHECK(AreSame(gradients, *TrainStep(make().get(), graph, step, tables)));
  }
}

TEST_CASE("the random numbers of steps that are launched as graphs are the CPU's") {
  const double most = 100 * test::ToleranceOfTestDevice();  // one other mask is 1
  const ModelGraph graph = GraphOf(kRandom);
  for (const int towers : {1, 2}) {
    CpuDevice cpu(1);
    const auto on_cpu = *MakeGroup(graph, &cpu, cpu::Ops(), {.towers = towers}, {kSmallerBatch});
    const auto device = test::MakeTestDevice(/*threads=*/1);
    const auto group = *MakeGroup(graph, device.get(), test::OpsOfTestDevice(), {.towers = towers},
                                  {kSmallerBatch});
    for (int step = 0; step < 20; ++step) {
      CAPTURE(towers, step);
      const std::vector<Tensor> wanted = *TrainStep(on_cpu.get(), graph, step);
      const std::vector<Tensor> gradients = *TrainStep(group.get(), graph, step);
      for (size_t v = 0; v < wanted.size(); ++v) {
        CHECK(reference::Distance(reference::ToArray(gradients[v].view()),
                                  reference::ToArray(wanted[v].view())) < most);
      }
    }
  }
}

TEST_CASE("steps on rows that the device has elsewhere are launched as graphs of their own") {
  constexpr uint64_t kGraphs = 8;
  constexpr int kSets = 12;
  const ModelGraph graph = GraphOf(kDense);
  const auto device = test::MakeTestDevice(/*threads=*/1);
  const bool has_graphs = device->name().starts_with("cuda");
  const auto stream = *device->CreateStream({});
  const auto copied = *device->CreateEvent();
  const auto group = *MakeGroup(graph, device.get(), test::OpsOfTestDevice());
  std::vector<Batch> on_host;
  std::vector<DeviceBuffer> memory;
  std::vector<std::vector<Batch>> batches(kSets);
  for (int set = 0; set < kSets; ++set) {
    on_host.push_back(BatchOf(graph, 4, 4 * set));
    const auto load = [&](const Tensor& tensor) {
      memory.push_back(*device->Allocate(tensor.num_bytes()));
      stream->CopyToDevice(memory.back().get(), tensor.data(), tensor.num_bytes());
      return TensorView{tensor.dtype(), tensor.shape(), memory.back().get()};
    };
    LoadedRows rows;
    rows.features = load(on_host.back().features);
    rows.labels = load(on_host.back().labels);
    batches[static_cast<size_t>(set)].emplace_back().loaded = rows;
  }
  stream->Record(copied.get());
  REQUIRE(copied->Wait().ok());
  std::vector<std::vector<Tensor>> wanted;
  uint64_t launches = 0;
  for (int round = 0; round < 4; ++round) {
    for (size_t set = 0; set < batches.size(); ++set) {
      CAPTURE(round, set);
      Operands operands(graph);
      const uint64_t before = device->use().graph_launches;
      REQUIRE(
          group->Train(batches[set], {operands.variable_views}, operands.gradient_views, 7, kIgnore)
              .ok());
      launches += device->use().graph_launches - before;
      if (round == 0) {
        wanted.push_back(std::move(operands.gradients));
      } else {
        CHECK(AreSame(operands.gradients, wanted[set]));
      }
    }
  }
  CHECK(launches == (has_graphs ? kGraphs * 3 : 0));
}

}  // namespace
}  // namespace lockstep::worker
