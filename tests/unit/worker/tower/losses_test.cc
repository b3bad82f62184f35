// Towers of models with several losses and with variables that layers share.
#include <catch2/catch.hpp>
#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "tests/reference/differences.h"
#include "tests/reference/model.h"
#include "tests/unit/worker/tower/models.h"
#include "tests/unit/worker/tower/test_tower.h"

namespace lockstep::worker {
namespace {

using reference::Array;

// A generator of four numbers from three, with batch norm, and a discriminator with two hidden
// layers that judges real and generated ones.
constexpr char kAdversaries[] = R"pb(
  input_shape: [ 4 ]
  layers {
    name: "d_real_hidden"
    dense { units: 6 }
  }
  layers {
    name: "d_real_tanh"
    tanh {}
  }
  layers {
    name: "d_real"
    dense { units: 1 }
  }
  layers {
    name: "d_real_loss"
    sigmoid_cross_entropy { target: 0.9 }
  }
  layers {
    name: "seed"
    inputs: "input"
    columns { count: 3 }
  }
  layers {
    name: "g_hidden"
    dense { units: 5 }
  }
  layers {
    name: "g_norm"
    batch_norm { momentum: 0.5 }
  }
  layers {
    name: "g_relu"
    relu {}
  }
  layers {
    name: "g_made"
    dense { units: 4 }
  }
  layers {
    name: "d_made_hidden"
    variables_of: "d_real_hidden"
    dense { units: 6 }
  }
  layers {
    name: "d_made_tanh"
    tanh {}
  }
  layers {
    name: "d_made"
    variables_of: "d_real"
    dense { units: 1 }
  }
  layers {
    name: "d_made_loss"
    sigmoid_cross_entropy { target: 0 }
  }
  layers {
    name: "g_loss"
    inputs: "d_made"
    sigmoid_cross_entropy { target: 1 }
  }
)pb";

ModelGraph TurnOf(const ModelGraph& whole, const std::vector<std::string>& losses,
                  const std::string& trains) {
  std::vector<int> nodes;
  for (size_t node = 0; node < whole.nodes().size(); ++node) {
    for (const std::string& loss : losses) {
      if (whole.nodes()[node].name == loss) nodes.push_back(static_cast<int>(node));
    }
  }
  return whole.ForLosses(nodes, [&](int variable) {
    return absl::StartsWith(whole.variables()[variable].name, trains);
  });
}

// Trains once: loss and gradients are those of the reference, and nothing else is announced or
// written.
void CheckTurn(const ModelGraph& graph, int threads) {
  const Batch batch = BatchOf(graph, 6);
  Operands operands(graph);
  std::vector<Array> variables = VariablesOf(graph);
  TestTower tower(graph, {.batches = {6}}, threads);
  std::vector<bool> announced(graph.variables().size());
  const auto ready = [&](std::span<const int> ids) {
    for (const int id : ids) {
      CHECK_FALSE(announced[id]);
      announced[id] = true;
    }
  };
  const auto mean_loss = [&] { return reference::MeanLoss(graph, variables, batch, true); };
  const float loss =
      tower.Train(batch, {operands.variable_views}, operands.gradient_views, 1, ready);
  CHECK(loss == Approx(mean_loss()).epsilon(1e-5));
  for (size_t v = 0; v < variables.size(); ++v) {
    const ModelVariable& variable = graph.variables()[v];
    INFO(variable.name);
    CHECK(announced[v] == !variable.frozen);
    CHECK(std::isnan(operands.gradients[v].as<float>()[0]) == variable.frozen);
    if (!variable.trainable || variable.frozen) continue;
    Array wanted(variables[v].dims);
    double largest = 0;
    for (int64_t i = 0; i < wanted.size(); ++i) {
      wanted.values[i] = reference::Derivative(variables[v].values[i], mean_loss);
      largest = std::max(largest, std::abs(wanted.values[i]));
    }
    CHECK(reference::Distance(reference::ToArray(operands.gradients[v].view()), wanted) < 2e-6);
    // A bias ahead of batch norm changes nothing.
    if (variable.name != "g_hidden/bias") CHECK(largest > 1e-4);
  }
}

TEST_CASE("a turn trains its losses' variables alone, through the layers of the others") {
  const ModelGraph whole = GraphOf(kAdversaries);
  for (const int threads : {1, 2}) {
    CheckTurn(TurnOf(whole, {"d_real_loss", "d_made_loss"}, "d_"), threads);
    CheckTurn(TurnOf(whole, {"g_loss"}, "g_"), threads);
    CheckTurn(TurnOf(whole, {"d_made_loss"}, "d_"), threads);
    // Two losses of the same scores.
    CheckTurn(TurnOf(whole, {"d_made_loss", "g_loss"}, "g_"), threads);
    CheckTurn(whole, threads);
  }
}

TEST_CASE("shared variables are announced with the first layer that uses them") {
  const ModelGraph graph = TurnOf(GraphOf(kAdversaries), {"d_real_loss", "d_made_loss"}, "d_");
  Operands operands(graph);
  TestTower tower(graph, {.batches = {3}});
  std::vector<std::string> announced;
  tower.Train(BatchOf(graph, 3), {operands.variable_views}, operands.gradient_views, 1,
              [&](std::span<const int> variables) {
                for (const int v : variables) announced.push_back(graph.variables()[v].name);
              });
  CHECK(announced == std::vector<std::string>{"train/loss", "d_real/bias", "d_real/kernel",
                                              "d_real_hidden/bias", "d_real_hidden/kernel"});
}

TEST_CASE("shared variables have the gradients that Keras has") {
  std::ifstream file("tests/unit/worker/tower/shared_keras.json");
  const nlohmann::json recorded = nlohmann::json::parse(file)["shared"];
  const auto array = [](const nlohmann::json& json) {
    Array made(json["dims"].get<std::vector<int64_t>>());
    made.values = json["values"].get<std::vector<double>>();
    return made;
  };
  std::string text = "input_shape: 5";
  const auto add = [&text](const std::string& line) { text += " layers { " + line + " }"; };
  const char* const targets[] = {"1", "0", "0.25"};
  for (int use = 0; use < 3; ++use) {
    const std::string k = std::to_string(use);
    const std::string input =
        use == 0 ? std::string() : " inputs: 'second" + std::to_string(use - 1) + "'";
    const auto shares = [&](const std::string& name) {
      return use == 0 ? std::string() : " variables_of: '" + name + "0'";
    };
    add("name: 'first" + k + "'" + input + shares("first") + " dense { units: 5 }");
    add("name: 'relu" + k + "' relu {}");
    add("name: 'second" + k + "'" + shares("second") + " dense { units: 5 }");
    add("name: 'loss" + k + "' sigmoid_cross_entropy { target: " + targets[use] + " }");
  }
  const ModelGraph graph = GraphOf(text);
  REQUIRE(graph.variables().size() == 5);
  Operands operands(graph);
  for (size_t v = 0; v < 4; ++v) {
    operands.variables[v] = reference::ToTensor(array(recorded["variables"][v]));
    operands.variable_views[v] = operands.variables[v].view();
  }
  Batch batch{reference::ToTensor(array(recorded["input"])), Tensor()};
  for (const int threads : {1, 2}) {
    TestTower tower(graph, {.batches = {6}}, threads);
    const float loss = tower.Train(batch, {operands.variable_views}, operands.gradient_views, 1,
                                   [](std::span<const int>) {});
    CHECK(loss == Approx(recorded["loss"].get<double>()).epsilon(1e-6));
    for (size_t v = 0; v < 4; ++v) {
      INFO(graph.variables()[v].name);
      CHECK(reference::Distance(reference::ToArray(operands.gradients[v].view()),
                                array(recorded["gradients"][v])) < 1e-6);
    }
  }
}

TEST_CASE("towers reduce the gradients of a turn as those of any model") {
  const ModelGraph graph = TurnOf(GraphOf(kAdversaries), {"g_loss"}, "g_");
  Operands alone(graph);
  Operands both(graph);
  TestTower one(graph, {.batches = {4}});
  one.Train(BatchOf(graph, 4), {alone.variable_views}, alone.gradient_views, 1,
            [](std::span<const int>) {});
  // The same batch twice: the mean is what one tower has.
  TestGroup group(graph, {.batch_per_tower = 4, .reducer = {.towers = 2}});
  std::vector<Batch> batches;
  for (int tower = 0; tower < 2; ++tower) batches.push_back(BatchOf(graph, 4));
  const absl::StatusOr<float> loss = group->Train(
      batches, {both.variable_views}, both.gradient_views, 1, [](std::span<const int>) {});
  REQUIRE(loss.ok());
  for (size_t v = 0; v < alone.gradients.size(); ++v) {
    INFO(graph.variables()[v].name);
    CHECK(std::isnan(both.gradients[v].as<float>()[0]) == graph.variables()[v].frozen);
    if (graph.variables()[v].frozen) continue;
    CHECK(reference::Distance(reference::ToArray(both.gradients[v].view()),
                              reference::ToArray(alone.gradients[v].view())) < 1e-6);
  }
}

}  // namespace
}  // namespace lockstep::worker
