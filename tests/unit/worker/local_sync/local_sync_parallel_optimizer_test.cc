#include "worker/local_sync/local_sync_parallel_optimizer.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <string>

#include "tests/reference/model.h"
#include "tests/unit/worker/local_sync/read_back.h"
#include "tests/unit/worker/tower/models.h"
#include "tests/unit/worker/tower/test_tower.h"

namespace lockstep::worker {
namespace {

using Catch::Contains;

const TowerGroup::GradientReady kIgnore = [](std::span<const int>) {};

std::unique_ptr<LocalSyncParallelOptimizer> MakeOptimizer(Device* device, int64_t most,
                                                          int64_t towers, int64_t states = 0) {
  auto made = LocalSyncParallelOptimizer::Create(
      {.max_per_device_batch_size = most, .towers = towers, .state_inputs = states}, device);
  REQUIRE(made.ok());
  return *std::move(made);
}

// n rows of one number each: their own.
Tensor Numbered(int64_t rows) {
  Tensor tensor(DType::kFloat32, Shape({rows, 1}));
  for (int64_t i = 0; i < rows; ++i) tensor.as<float>()[i] = static_cast<float>(i);
  return tensor;
}

TEST_CASE("a tower has its part, and an index gives rows of it without moving any") {
  const auto device = test::MakeTestDevice(1);
  const auto optimizer = MakeOptimizer(device.get(), 3, 2, 1);
  const Tensor features = Numbered(21), labels = Numbered(21), states = Numbered(7);
  const TensorView inputs[] = {features.view(), labels.view()};
  const TensorView state_inputs[] = {states.view()};
  CHECK(*optimizer->LoadData(inputs, state_inputs) == 9);
  const uint64_t bytes = optimizer->bytes_to_towers();
  CHECK(bytes == (18 + 18 + 6) * sizeof(float));
  for (const int64_t index : {6, 0, 3, 0, 4}) {
    CAPTURE(index);
    const std::vector<Batch>& batches = **optimizer->BatchesAt(index);
    REQUIRE(batches.size() == 2);
    const float first = static_cast<float>(index / 3 * 3);
    for (int tower = 0; tower < 2; ++tower) {
      const LoadedRows& rows = *batches[tower].loaded;
      const float from = first + 9.0f * static_cast<float>(tower);
      CHECK(batches[tower].size() == 1);
      CHECK(rows.features.shape == Shape({1, 3, 1}));
      CHECK(test::ReadBack(device.get(), rows.features) ==
            std::vector<float>{from, from + 1, from + 2});
      CHECK(test::ReadBack(device.get(), rows.labels) ==
            std::vector<float>{from, from + 1, from + 2});
      CHECK(rows.host_features.as<float>()[0] == from);
      CHECK(test::ReadBack(device.get(), rows.state_inputs[0]) == std::vector<float>{from / 3});
    }
  }
  CHECK(optimizer->bytes_to_towers() == bytes);
}

TEST_CASE("another load replaces the one before, with a batch size of its own") {
  const auto device = test::MakeTestDevice(1);
  const auto optimizer = MakeOptimizer(device.get(), 16, 4);
  const Tensor many = Numbered(130), few = Numbered(10);
  const TensorView first[] = {many.view(), many.view()};
  const TensorView second[] = {few.view(), few.view()};
  CHECK(*optimizer->LoadData(first, {}) == 32);
  CHECK((**optimizer->BatchesAt(16))[0].size() == 16);
  CHECK(*optimizer->LoadData(second, {}) == 2);
  CHECK(absl::IsInvalidArgument(optimizer->BatchesAt(16).status()));
  const std::vector<Batch>& batches = **optimizer->BatchesAt(0);
  CHECK(test::ReadBack(device.get(), batches[3].loaded->features) == std::vector<float>{6, 7});
}

TEST_CASE("a step without a load, past it, or after a load that failed is refused") {
  const auto device = test::MakeTestDevice(1);
  const auto optimizer = MakeOptimizer(device.get(), 4, 2);
  const auto error = [&](int64_t index) {
    return std::string(optimizer->BatchesAt(index).status().message());
  };
  CHECK(absl::IsFailedPrecondition(optimizer->BatchesAt(0).status()));
  CHECK_THAT(error(0), Contains("No data loaded?") && Contains("Remedy: "));
  const Tensor rows = Numbered(20), fewer = Numbered(19), one = Numbered(1);
  const TensorView inputs[] = {rows.view(), rows.view()};
  REQUIRE(optimizer->LoadData(inputs, {}).ok());
  CHECK_THAT(error(-1), Contains("batch_index: expected 0 to 4"));
  CHECK_THAT(error(5), Contains("batch_index: expected 0 to 4"));

  const auto load = [&](std::span<const TensorView> arrays, std::span<const TensorView> states) {
    const absl::Status status = optimizer->LoadData(arrays, states).status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(error(0), Contains("No data loaded?"));
    return std::string(status.message());
  };
  const TensorView unequal[] = {rows.view(), fewer.view()};
  const TensorView single[] = {one.view(), one.view()};
  CHECK_THAT(load(unequal, {}), Contains("inputs[1]: expected as many rows as inputs[0] has"));
  CHECK_THAT(load({inputs, 1}, {}), Contains("inputs: expected 2 arrays, got 1"));
  CHECK_THAT(load(inputs, {inputs, 1}), Contains("state_inputs: expected 0 arrays, got 1"));
  CHECK_THAT(load(single, {}),
             Contains("Must load at least 1 tuple sequence per device, got only 1 total."));
}

TEST_CASE("an optimizer without towers or rows per batch is refused") {
  const auto device = test::MakeTestDevice(1);
  const auto create = [&](int64_t most, int64_t towers) {
    return LocalSyncParallelOptimizer::Create({.max_per_device_batch_size = most, .towers = towers},
                                              device.get())
        .status();
  };
  CHECK(absl::IsInvalidArgument(create(0, 1)));
  CHECK(absl::IsInvalidArgument(create(4, 0)));
}

TEST_CASE("a step of a load gives the bits of the same batches given one by one") {
  for (const char* model : {kLeNet, kResidual, kWideAndDeep}) {
    const ModelGraph graph = GraphOf(model);
    const TowerGroupOptions options{
        .batch_per_tower = 4, .reducer = {.towers = 2, .batch_norm_updates = JobDef::EVERY_TOWER}};
    TestGroup loaded(graph, options);
    TestGroup plain(graph, options);
    const auto optimizer = MakeOptimizer(loaded.device.get(), 4, 2);
    const Batch block = BatchOf(graph, 24);
    const TensorView inputs[] = {block.features.view(), block.labels.view()};
    REQUIRE(*optimizer->LoadData(inputs, {}) == 12);
    for (const int64_t index : {8, 0, 4}) {
      CAPTURE(model, index);
      Operands got(graph), wanted(graph);
      const absl::StatusOr<DeviceLosses> losses = optimizer->Optimize(
          index, {loaded.group.get(), {got.variable_views}, got.gradient_views, 3}, kIgnore);
      REQUIRE(losses.ok());
      std::vector<Batch> batches;
      for (int64_t tower = 0; tower < 2; ++tower) {
        batches.push_back(BatchOf(graph, 4, 12 * tower + index));
      }
      const float loss =
          plain->Train(batches, {wanted.variable_views}, wanted.gradient_views, 3, kIgnore).value();
      CHECK(losses->common_loss == loss);
      REQUIRE(losses->device_losses.size() == 2);
      CHECK((losses->device_losses[0] + losses->device_losses[1]) * 0.5f == loss);
      for (size_t v = 0; v < got.gradients.size(); ++v) {
        CHECK(SameBits(got.gradients[v], wanted.gradients[v]));
      }
    }
  }
}

TEST_CASE("all steps of loads but the first are launched as graphs, and keep their bits") {
  constexpr int64_t kBatch = 4;
  constexpr int64_t kMinibatches = 15;  // more than there are graphs of a tower
  constexpr uint64_t kTowers = 2;
  for (const char* model : {kLeNet, kStates}) {
    const ModelGraph graph = GraphOf(model);
    const TowerGroupOptions options{.batch_per_tower = kBatch, .reducer = {.towers = kTowers}};
    TestGroup loaded(graph, options);
    TestGroup plain(graph, options);
    const bool has_graphs = loaded.device->name().starts_with("cuda");
    const auto optimizer =
        MakeOptimizer(loaded.device.get(), kBatch, kTowers, graph.num_state_inputs());
    const uint64_t before = loaded.device->use().graph_launches;
    uint64_t steps = 0;
    for (const int64_t load : {0, 1}) {
      const int64_t part = kBatch * kMinibatches;
      const Batch block = BatchOf(graph, kTowers * part, load);
      const TensorView inputs[] = {block.features.view(), block.labels.view()};
      std::vector<TensorView> states;
      for (const Tensor& state : block.states) states.push_back(state.view());
      REQUIRE(*optimizer->LoadData(inputs, states) == part);
      for (int64_t minibatch = kMinibatches - 1; minibatch >= 0; --minibatch) {
        CAPTURE(model, load, minibatch);
        const int64_t index = kBatch * minibatch;
        Operands got(graph), wanted(graph);
        REQUIRE(optimizer
                    ->Optimize(index,
                               {loaded.group.get(), {got.variable_views}, got.gradient_views, 3},
                               kIgnore)
                    .ok());
        std::vector<Batch> batches;
        for (int64_t tower = 0; tower < static_cast<int64_t>(kTowers); ++tower) {
          batches.push_back(BatchOf(graph, kBatch, load + part * tower + index));
        }
        REQUIRE(
            plain->Train(batches, {wanted.variable_views}, wanted.gradient_views, 3, kIgnore).ok());
        for (size_t v = 0; v < got.gradients.size(); ++v) {
          CHECK(SameBits(got.gradients[v], wanted.gradients[v]));
        }
        ++steps;
      }
    }
    const uint64_t of_loaded = loaded.device->use().graph_launches - before;
    CHECK(of_loaded == (has_graphs ? kTowers * (steps - 1) : 0));
  }
}

// The batches one behind the other.
Batch Joined(const ModelGraph& graph, std::span<const int64_t> firsts, int64_t size) {
  const int64_t count = static_cast<int64_t>(firsts.size());
  Batch all = BatchOf(graph, size * count);
  const auto copy = [&](const Tensor& from, int64_t at, Tensor* to) {
    Copy(from.view(), RowRange(to->view(), at * size, size));
  };
  for (int64_t i = 0; i < count; ++i) {
    const Batch one = BatchOf(graph, size, firsts[i]);
    copy(one.features, i, &all.features);
    copy(one.labels, i, &all.labels);
    for (size_t state = 0; state < one.states.size(); ++state) {
      copy(one.states[state], i, &all.states[state]);
    }
  }
  return all;
}

TEST_CASE("the common loss is that of the rows of all towers as one batch") {
  for (const char* model : {kLeNet, kResidual, kStates}) {
    CAPTURE(model);
    const ModelGraph graph = GraphOf(model);
    TestTower unsplit(graph, {.batches = {8}, .own_gradients = true});
    const auto device = test::MakeTestDevice(1);
    const int64_t states = graph.num_state_inputs();
    const auto optimizer = MakeOptimizer(device.get(), 4, 2, states);
    const Batch block = BatchOf(graph, 24);
    Operands operands(graph);
    const LocalSyncParallelOptimizer::CommonLossArguments arguments{
        unsplit.operator->(), {operands.variable_views}, operands.gradient_views};
    CHECK(absl::IsFailedPrecondition(optimizer->GetCommonLoss(0, arguments).status()));
    const TensorView inputs[] = {block.features.view(), block.labels.view()};
    std::vector<TensorView> state_inputs;
    for (const Tensor& state : block.states) state_inputs.push_back(state.view());
    REQUIRE(optimizer->LoadData(inputs, state_inputs).ok());
    for (const int64_t index : {8, 0, 4}) {
      const int64_t firsts[] = {index, 12 + index};
      const Batch all = Joined(graph, firsts, 4);
      const absl::StatusOr<float> loss = optimizer->GetCommonLoss(index, arguments);
      INFO(loss.status());
      REQUIRE(loss.ok());
      CHECK(*loss ==
            Approx(reference::MeanLoss(graph, VariablesOf(graph), all, true)).epsilon(1e-5));
    }
    CHECK(absl::IsInvalidArgument(optimizer->GetCommonLoss(9, arguments).status()));
    CHECK(absl::IsInvalidArgument(optimizer->GetCommonLoss(-1, arguments).status()));
  }
}

TEST_CASE("the common loss of steps takes them as sequences, with their states") {
  const ModelGraph graph = GraphOf(kStates);  // sequences of 6 steps
  TestTower unsplit(graph, {.batches = {4}, .own_gradients = true});
  const auto device = test::MakeTestDevice(1);
  const auto optimizer = MakeOptimizer(device.get(), 12, 2, 3);
  const Batch block = BatchOf(graph, 8);
  TensorView inputs[] = {block.features.view(), block.labels.view()};
  inputs[0].shape = Shape({48, 3});
  inputs[1].shape = Shape({48});
  const TensorView states[] = {block.states[0].view(), block.states[1].view(),
                               block.states[2].view()};
  REQUIRE(*optimizer->LoadData(inputs, states) == 24);
  Operands operands(graph);
  const int64_t firsts[] = {2, 6};
  const absl::StatusOr<float> loss = optimizer->GetCommonLoss(
      12, {unsplit.operator->(), {operands.variable_views}, operands.gradient_views});
  REQUIRE(loss.ok());
  CHECK(*loss ==
        Approx(reference::MeanLoss(graph, VariablesOf(graph), Joined(graph, firsts, 2), true))
            .epsilon(1e-5));
}

}  // namespace
}  // namespace lockstep::worker
