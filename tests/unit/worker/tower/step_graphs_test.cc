// Steps that a device launches as graphs: they have the bits of steps that it enqueues.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>
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

TEST_CASE("a step that is launched as a graph has the bits of one that is enqueued") {
  constexpr int kSteps = 7;
  constexpr int kCaptured = 3;  // and launched then
  const std::vector<const char*> models = AllModels();
  for (size_t model = 0; model < models.size(); ++model) {
    const ModelGraph graph = GraphOf(models[model]);
    for (const int towers : {1, 2}) {
      const auto device = test::MakeTestDevice(/*threads=*/1);
      const bool has_graphs = device->name().starts_with("cuda");
      const ReducerOptions reducer = OptionsOf(towers, model);
      const auto make = [&] {
        return *MakeGroup(graph, device.get(), test::OpsOfTestDevice(), reducer, {kSmallerBatch});
      };
      const auto group = make();
      for (int step = 0; step < kSteps; ++step) {
        CAPTURE(model, towers, step);
        const uint64_t before = device->use().graph_launches;
        const std::vector<Tensor> gradients = *TrainStep(group.get(), graph, step);
        const uint64_t launches = device->use().graph_launches - before;
        // The first step of each size is enqueued.
        CHECK(launches == (has_graphs && step >= 2 ? static_cast<uint64_t>(towers) : 0));
        if (step != kCaptured && step != kSteps - 1) continue;
        CHECK(AreSame(gradients, *TrainStep(make().get(), graph, step)));
        CHECK(device->use().graph_launches == before + launches);
      }
    }
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
