#include "worker/tower/tower.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "absl/strings/str_cat.h"
#include "tests/reference/differences.h"
#include "tests/reference/layers.h"
#include "tests/reference/model.h"
#include "tests/unit/worker/tower/models.h"
#include "tests/unit/worker/tower/test_tower.h"

// Memory that cannot be had is an error here, not the end of the process as sanitizers have it.
extern "C" const char* __asan_default_options() { return "allocator_may_return_null=1"; }
extern "C" const char* __tsan_default_options() { return "allocator_may_return_null=1"; }

namespace lockstep::worker {
namespace {

using reference::Array;

const TowerGroup::GradientReady kIgnore = [](std::span<const int>) {};

// Trains once and compares loss, gradients and new statistics with the reference.
void CheckTraining(const ModelGraph& graph, TestTower& tower, int64_t batch_size) {
  const Batch batch = BatchOf(graph, batch_size);
  Operands operands(graph);
  std::vector<Array> variables = VariablesOf(graph);
  const auto mean_loss = [&] { return reference::MeanLoss(graph, variables, batch, true); };
  const float loss =
      tower.Train(batch, {operands.variable_views}, operands.gradient_views, 1, kIgnore);
  CHECK(loss == Approx(mean_loss()).epsilon(1e-5));
  CHECK(operands.gradients.back().as<float>()[0] == loss);
  for (size_t v = 0; v < variables.size(); ++v) {
    if (!graph.variables()[v].trainable || graph.variables()[v].frozen) continue;
    INFO("gradient of " << graph.variables()[v].name << ", batch " << batch_size);
    Array got(std::vector<int64_t>{0});
    Array wanted = got;
    for (int64_t i : reference::SpreadIndices(variables[v].size(), 12)) {
      got.values.push_back(operands.gradients[v].as<float>()[i]);
      wanted.values.push_back(reference::Derivative(variables[v].values[i], mean_loss));
    }
    CHECK(reference::Distance(got, wanted) < 2e-6);
    double largest = 0;
    for (double value : wanted.values) largest = std::max(largest, std::abs(value));
    CHECK(largest > 1e-4);  // it depends on the variable at all
  }
}

TEST_CASE("a tower's loss and gradients are those of the model") {
  for (const char* text : {kLeNet, kResidual, kRegression, kWideAndDeep, kSequences, kStates}) {
    const ModelGraph graph = GraphOf(text);
    INFO(text);
    for (int threads : {1, 2}) {
      TestTower tower(graph, {.batches = {5}}, threads);
      CheckTraining(graph, tower, 5);
    }
  }
}

// A residual network whose left branch and one of whose norms are frozen.
ModelGraph PartlyFrozen() {
  std::string text = kResidual;
  for (const char* name : {"left", "right_norm"}) {
    const std::string line = absl::StrCat("name: \"", name, "\"");
    const size_t at = text.find(line);
    REQUIRE(at != std::string::npos);
    text.insert(at, "frozen: true ");
  }
  return GraphOf(text);
}

TEST_CASE("a model with frozen layers has the loss and gradients of its other variables") {
  const ModelGraph graph = PartlyFrozen();
  TestTower tower(graph, {.batches = {5}}, 2);
  CheckTraining(graph, tower, 5);
}

TEST_CASE("frozen variables are not announced and their gradients not written") {
  const ModelGraph graph = PartlyFrozen();
  Operands operands(graph);
  TestTower tower(graph, {.batches = {3}});
  std::vector<std::string> announced;
  tower.Train(BatchOf(graph, 3), {operands.variable_views}, operands.gradient_views, 1,
              [&](std::span<const int> variables) {
                for (const int v : variables) announced.push_back(graph.variables()[v].name);
              });
  CHECK(announced == std::vector<std::string>{"train/loss", "fc/bias", "fc/kernel", "right/kernel",
                                              "norm/moving_variance", "norm/moving_mean",
                                              "norm/beta", "norm/gamma", "stem/kernel"});
  for (size_t v = 0; v < graph.variables().size(); ++v) {
    CHECK(std::isnan(operands.gradients[v].as<float>()[0]) == graph.variables()[v].frozen);
  }
}

TEST_CASE("a model that is frozen as a whole has its loss alone") {
  const ModelGraph graph = GraphOf(R"pb(
    input_shape: [ 4 ]
    layers {
      name: "fc"
      frozen: true
      dense { units: 3 }
    }
    layers {
      name: "loss"
      softmax_cross_entropy {}
    }
  )pb");
  TestTower tower(graph, {.batches = {3}});
  CheckTraining(graph, tower, 3);
}

TEST_CASE("a tower takes smaller batches than its largest, in any order") {
  const ModelGraph graph = GraphOf(kResidual);
  TestTower tower(graph, {.batches = {6, 2, 5, 1}});
  for (int64_t size : {6, 2, 5, 6, 5, 1}) CheckTraining(graph, tower, size);
}

TEST_CASE("a model that only scores its input has a loss and nothing to train") {
  const ModelGraph graph = GraphOf(R"pb(
    input_shape: [ 2, 2 ]
    layers {
      name: "flat"
      flatten {}
    }
    layers {
      name: "loss"
      softmax_cross_entropy {}
    }
  )pb");
  TestTower tower(graph, {.batches = {3}});
  CheckTraining(graph, tower, 3);
}

TEST_CASE("moving statistics follow the batch with their momentum") {
  const ModelGraph graph = GraphOf(R"pb(
    input_shape: [ 3 ]
    layers {
      name: "norm"
      batch_norm { momentum: 0.75 }
    }
    layers {
      name: "loss"
      softmax_cross_entropy {}
    }
  )pb");
  TestTower tower(graph, {.batches = {8}});
  const Batch batch = BatchOf(graph, 8);
  Operands operands(graph);
  tower.Train(batch, {operands.variable_views}, operands.gradient_views, 1, kIgnore);
  const reference::Moments moments =
      reference::MomentsOf(reference::ToArray(batch.features.view()));
  for (int c = 0; c < 3; ++c) {
    const float mean = operands.variables[2].as<float>()[c];
    const float variance = operands.variables[3].as<float>()[c];
    CHECK(operands.gradients[2].as<float>()[c] ==
          Approx(0.75 * mean + 0.25 * moments.mean.values[c]).margin(1e-6));
    CHECK(operands.gradients[3].as<float>()[c] ==
          Approx(0.75 * variance + 0.25 * moments.variance.values[c]).margin(1e-6));
  }
}

TEST_CASE("gradients are announced once each, final, from the last variable to the first") {
  for (const char* text : {kLeNet, kResidual, kRegression, kWideAndDeep, kSequences, kStates}) {
    const ModelGraph graph = GraphOf(text);
    TestTower tower(graph, {.batches = {4}});
    const Batch batch = BatchOf(graph, 4);
    Operands operands(graph);
    std::vector<int> announced;
    std::vector<Tensor> at_the_time;
    tower.Train(batch, {operands.variable_views}, operands.gradient_views, 1,
                [&](std::span<const int> variables) {
                  for (const int variable : variables) {
                    announced.push_back(variable);
                    at_the_time.push_back(operands.gradients[variable].Clone());
                  }
                });
    REQUIRE(announced.size() == graph.variables().size());
    for (size_t i = 0; i < announced.size(); ++i) {
      CHECK(announced[i] == static_cast<int>(announced.size() - 1 - i));
      CHECK(SameBits(at_the_time[i], operands.gradients[announced[i]]));
    }
  }
}

TEST_CASE("the same input gives the same bits, run after run and tower after tower") {
  const ModelGraph graph = GraphOf(kResidual);
  const Batch batch = BatchOf(graph, 32);
  Operands first(graph);
  for (int threads : {1, 2}) {
    TestTower tower(graph, {.batches = {32}}, threads);
    tower.Train(batch, {first.variable_views}, first.gradient_views, 1, kIgnore);
    for (int run = 0; run < 5; ++run) {
      TestTower other(graph, {.batches = {32}}, threads);
      Operands again(graph);
      TestTower& repeated = run % 2 == 0 ? tower : other;
      repeated.Train(batch, {again.variable_views}, again.gradient_views, 1, kIgnore);
      for (size_t v = 0; v < first.gradients.size(); ++v) {
        CHECK(SameBits(first.gradients[v], again.gradients[v]));
      }
    }
  }
}

TEST_CASE("evaluation takes the moving statistics and counts what is right") {
  for (const char* text : {kLeNet, kResidual, kRegression, kWideAndDeep, kSequences, kStates}) {
    const ModelGraph graph = GraphOf(text);
    INFO(text);
    const std::vector<Array> variables = VariablesOf(graph);
    Operands operands(graph);
    for (bool training : {false, true}) {
      TestTower tower(graph, {.batches = {7, 3}, .training = training, .whole_tables = true});
      for (int64_t size : {7, 3, 0}) {
        const Batch batch = BatchOf(graph, std::max<int64_t>(size, 1));
        if (size == 0) {
          const Batch empty{Tensor(DType::kFloat32, Shape({0, 1})), Tensor()};
          CHECK(tower->Evaluate(empty, {operands.variable_views}).value().examples == 0);
          continue;
        }
        const Array scores = reference::Scores(graph, variables, batch, /*training=*/false);
        int64_t correct = 0;
        for (int64_t row = 0; graph.is_classifier() && row < scores.rows(); ++row) {
          const auto begin = scores.values.begin() + row * scores.dims.back();
          const auto largest = std::max_element(begin, begin + scores.dims.back());
          correct += largest - begin == batch.labels.as<int32_t>()[row];
        }
        const Tower::Evaluation evaluation =
            tower->Evaluate(batch, {operands.variable_views}).value();
        CHECK(evaluation.examples == size);
        CHECK(evaluation.correct == correct);
        CHECK(evaluation.loss_sum == Approx(graph.labels_per_example() * size *
                                            reference::MeanLoss(graph, variables, batch, false))
                                         .epsilon(1e-5));

        const TensorView predictions = tower->Predict(batch, {operands.variable_views}, 0).value();
        CHECK(predictions.shape == Shape({size * graph.labels_per_example(), graph.num_outputs()}));
        CHECK(reference::Distance(reference::ToArray(predictions),
                                  graph.is_classifier() ? reference::Softmax(scores) : scores) <
              1e-5);
      }
    }
  }
}

TEST_CASE("training and evaluation may take turns") {
  const ModelGraph graph = GraphOf(kResidual);
  TestTower tower(graph, {.batches = {5}});
  const Batch batch = BatchOf(graph, 5);
  Operands first(graph);
  Operands again(graph);
  tower.Train(batch, {first.variable_views}, first.gradient_views, 1, kIgnore);
  tower->Evaluate(BatchOf(graph, 5, 100), {first.variable_views}).value();
  tower.Train(batch, {again.variable_views}, again.gradient_views, 1, kIgnore);
  for (size_t v = 0; v < first.gradients.size(); ++v) {
    CHECK(SameBits(first.gradients[v], again.gradients[v]));
  }
}

TEST_CASE("dropout follows the key in training and is gone in evaluation") {
  const char* const text = R"pb(
    input_shape: [ 40 ]
    layers {
      name: "fc1"
      dense { units: 50 }
    }
    layers {
      name: "relu"
      relu {}
    }
    layers {
      name: "drop"
      dropout { rate: 0.5 }
    }
    layers {
      name: "fc2"
      dense { units: 4 }
    }
    layers {
      name: "loss"
      softmax_cross_entropy {}
    }
  )pb";
  const ModelGraph graph = GraphOf(text);
  TestTower tower(graph, {.batches = {6}});
  const Batch batch = BatchOf(graph, 6);
  Operands operands(graph);
  const auto loss = [&](uint64_t key) {
    return tower.Train(batch, {operands.variable_views}, operands.gradient_views, key, kIgnore);
  };
  const float once = loss(3);
  CHECK(once == loss(3));
  CHECK(once != loss(4));
  CHECK(tower->Evaluate(batch, {operands.variable_views}).value().loss_sum ==
        Approx(6 * reference::MeanLoss(graph, VariablesOf(graph), batch, false)).epsilon(1e-5));
}

TEST_CASE("a batch of a size that was not planned is refused") {
  const ModelGraph graph = GraphOf(kRegression);
  TestTower tower(graph, {.batches = {4, 2}});
  Operands operands(graph);
  const absl::Status refused =
      tower->Evaluate(BatchOf(graph, 3), {operands.variable_views}).status();
  CHECK(absl::IsInvalidArgument(refused));
  CHECK_THAT(std::string(refused.message()), Catch::Contains("a batch of 3 examples"));
}

TEST_CASE("options that make no sense are refused") {
  const ModelGraph graph = GraphOf(kRegression);
  const std::shared_ptr<Device> device = test::MakeTestDevice(1);
  const auto create = [&](const TowerOptions& options) {
    return Tower::Create(graph, device.get(), test::OpsOfTestDevice(), options).status();
  };
  CHECK(absl::IsInvalidArgument(create({.batches = {0}})));
  CHECK(absl::IsInvalidArgument(create({.batches = {}})));
  const absl::Status huge = create({.batches = {int64_t{1} << 45}});
  INFO(huge);
  CHECK(!huge.ok());
}

}  // namespace
}  // namespace lockstep::worker
