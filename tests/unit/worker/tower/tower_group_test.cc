#include "worker/tower/tower_group.h"

#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "common/base/philox.h"
#include "tests/unit/worker/tower/models.h"
#include "tests/unit/worker/tower/test_tower.h"

namespace lockstep::worker {
namespace {

using reference::Array;

std::vector<Batch> BatchesOf(const ModelGraph& graph, int towers, int64_t per_tower) {
  std::vector<Batch> batches;
  for (int t = 0; t < towers; ++t) batches.push_back(BatchOf(graph, per_tower, t * per_tower));
  return batches;
}

const TowerGroup::GradientReady kIgnore = [](std::span<const int>) {};

TEST_CASE("towers with parts of a batch do what one tower does with the whole") {
  const ModelGraph graph = GraphOf(kLeNet);
  Operands whole(graph);
  TestGroup one(graph, {.batch_per_tower = 12, .reducer = {.towers = 1}}, 1);
  const float loss =
      one->Train(BatchesOf(graph, 1, 12), {whole.variable_views}, whole.gradient_views, 1, kIgnore)
          .value();
  for (int towers : {2, 3, 4}) {
    Operands parts(graph);
    TestGroup group(graph, {.batch_per_tower = 12 / towers, .reducer = {.towers = towers}}, 1);
    CHECK(group
              ->Train(BatchesOf(graph, towers, 12 / towers), {parts.variable_views},
                      parts.gradient_views, 1, kIgnore)
              .value() == Approx(loss).epsilon(1e-6));
    for (size_t v = 0; v < parts.gradients.size(); ++v) {
      INFO(graph.variables()[v].name << ", towers " << towers);
      CHECK(reference::Distance(reference::ToArray(parts.gradients[v].view()),
                                reference::ToArray(whole.gradients[v].view())) < 1e-6);
    }
  }
}

TEST_CASE("the mean over towers is their sum in order, for statistics too") {
  const ModelGraph graph = GraphOf(kResidual);
  constexpr int kTowers = 3;
  TestGroup group(graph, {.batch_per_tower = 4, .reducer = {.towers = kTowers}}, 2);
  const std::vector<Batch> batches = BatchesOf(graph, kTowers, 4);
  TestTower tower(graph, {.batches = {4}}, 2);
  std::vector<Operands> alone;
  for (int t = 0; t < kTowers; ++t) {
    alone.emplace_back(graph);
    tower.Train(batches[t], {alone[t].variable_views}, alone[t].gradient_views, 1, kIgnore);
  }
  // Again and again: the threads keep nothing of the step before.
  for (int step = 0; step < 20; ++step) {
    Operands mean(graph);
    group->Train(batches, {mean.variable_views}, mean.gradient_views, step, kIgnore).value();
    for (size_t v = 0; v < mean.gradients.size(); ++v) {
      const std::span<const float> got = mean.gradients[v].as<float>();
      for (size_t i = 0; i < got.size(); ++i) {
        const float sum = alone[0].gradients[v].as<float>()[i] +
                          alone[1].gradients[v].as<float>()[i] +
                          alone[2].gradients[v].as<float>()[i];
        if (got[i] != sum * (1.0f / kTowers)) FAIL(graph.variables()[v].name << " at " << i);
      }
    }
  }
}

// By variable: of batch normalization's moving statistics; 0 for all else.
std::vector<float> MomentumsOf(const ModelGraph& graph) {
  std::vector<float> momentums(graph.variables().size());
  for (const ModelNode& node : graph.nodes()) {
    if (!node.layer.has_batch_norm()) continue;
    for (const int variable : node.variables) {
      if (graph.variables()[variable].trainable) continue;
      momentums[variable] = node.layer.batch_norm().momentum();
    }
  }
  return momentums;
}

TEST_CASE("moving statistics follow every tower in turn, or the first one, where a job says so") {
  const ModelGraph graph = GraphOf(kResidual);
  const std::vector<float> momentums = MomentumsOf(graph);
  REQUIRE(std::ranges::count_if(momentums, [](float m) { return m > 0; }) > 0);
  constexpr int kTowers = 3;
  const std::vector<Batch> batches = BatchesOf(graph, kTowers, 4);
  TestTower tower(graph, {.batches = {4}});
  std::vector<Operands> alone;
  for (int t = 0; t < kTowers; ++t) {
    alone.emplace_back(graph);
    tower.Train(batches[t], {alone[t].variable_views}, alone[t].gradient_views, 1, kIgnore);
  }
  const auto train = [&](JobDef::BatchNormUpdates updates, Operands* operands) {
    TestGroup group(graph, {.batch_per_tower = 4,
                            .reducer = {.towers = kTowers, .batch_norm_updates = updates}});
    group->Train(batches, {operands->variable_views}, operands->gradient_views, 1, kIgnore).value();
    REQUIRE(group->device_losses().size() == kTowers);
    for (int t = 0; t < kTowers; ++t) {
      CHECK(group->device_losses()[t] == alone[t].gradients.back().as<float>()[0]);
    }
  };
  Operands mean(graph), every(graph), first(graph);
  train(JobDef::MEAN, &mean);
  train(JobDef::EVERY_TOWER, &every);
  train(JobDef::FIRST_TOWER, &first);
  for (size_t v = 0; v < momentums.size(); ++v) {
    INFO(graph.variables()[v].name);
    if (momentums[v] == 0) {
      CHECK(SameBits(every.gradients[v], mean.gradients[v]));
      CHECK(SameBits(first.gradients[v], mean.gradients[v]));
      continue;
    }
    CHECK(SameBits(first.gradients[v], alone[0].gradients[v]));
    const double m = momentums[v];
    for (int64_t i = 0; i < every.gradients[v].num_elements(); ++i) {
      const double old = every.variables[v].as<float>()[i];
      double value = old;
      for (int t = 0; t < kTowers; ++t) {
        const double statistic = (alone[t].gradients[v].as<float>()[i] - m * old) / (1 - m);
        value = m * value + (1 - m) * statistic;
      }
      CHECK(every.gradients[v].as<float>()[i] == Approx(value).epsilon(1e-6).margin(1e-6));
    }
  }
}

TEST_CASE("a group takes smaller batches that it was told of, and no others") {
  const ModelGraph graph = GraphOf(kLeNet);
  TestGroup group(graph, {.batch_per_tower = 4, .smaller_batches = {3}, .reducer = {.towers = 2}});
  for (const int64_t size : {3, 4, 2}) {
    Operands operands(graph);
    CHECK(group
              ->Train(BatchesOf(graph, 2, size), {operands.variable_views}, operands.gradient_views,
                      1, kIgnore)
              .ok() == (size > 2));
  }
}

TEST_CASE("means are announced in order, complete, on the caller's thread") {
  const ModelGraph graph = GraphOf(kResidual);
  for (int towers : {1, 2}) {
    TestGroup group(graph, {.batch_per_tower = 4, .reducer = {.towers = towers}}, 1);
    Operands operands(graph);
    std::vector<int> announced;
    std::vector<Tensor> at_the_time;
    bool elsewhere = false;
    const std::thread::id caller = std::this_thread::get_id();
    const float loss = group
                           ->Train(BatchesOf(graph, towers, 4), {operands.variable_views},
                                   operands.gradient_views, 1,
                                   [&](std::span<const int> variables) {
                                     for (const int variable : variables) {
                                       announced.push_back(variable);
                                       at_the_time.push_back(operands.gradients[variable].Clone());
                                     }
                                     elsewhere = elsewhere || std::this_thread::get_id() != caller;
                                   })
                           .value();
    CHECK(!elsewhere);
    CHECK(operands.gradients.back().as<float>()[0] == loss);
    REQUIRE(announced.size() == graph.variables().size());
    for (size_t i = 0; i < announced.size(); ++i) {
      CHECK(announced[i] == static_cast<int>(announced.size() - 1 - i));
      CHECK(SameBits(at_the_time[i], operands.gradients[announced[i]]));
    }
  }
}

TEST_CASE("towers drop out independently of one another") {
  const ModelGraph graph = GraphOf(R"pb(
    input_shape: [ 64 ]
    layers {
      name: "drop"
      dropout { rate: 0.5 }
    }
    layers {
      name: "fc"
      dense { units: 4 }
    }
    layers {
      name: "loss"
      softmax_cross_entropy {}
    }
  )pb");
  TestGroup group(graph, {.batch_per_tower = 2, .reducer = {.towers = 2}}, 1);
  std::vector<Batch> same;
  for (int t = 0; t < 2; ++t) same.push_back(BatchOf(graph, 2));
  Operands both(graph);
  const float mean =
      group->Train(same, {both.variable_views}, both.gradient_views, 5, kIgnore).value();
  Operands alone(graph);
  TestTower tower(graph, {.batches = {2}});
  const float first =
      tower.Train(same[0], {alone.variable_views}, alone.gradient_views, MixSeeds(5, 0), kIgnore);
  CHECK(mean != Approx(first).epsilon(1e-6));
}

TEST_CASE("a group of no towers is refused, and so is a batch of nothing") {
  const ModelGraph graph = GraphOf(kLeNet);
  const std::shared_ptr<Device> device = test::MakeTestDevice(1);
  const auto create = [&](const TowerGroupOptions& options) {
    return TowerGroup::Create(graph, device.get(), test::OpsOfTestDevice(), options).status();
  };
  CHECK(absl::IsInvalidArgument(create({.batch_per_tower = 1, .reducer = {.towers = 0}})));
  CHECK(absl::IsInvalidArgument(create({.reducer = {.towers = 2}})));
}

}  // namespace
}  // namespace lockstep::worker
