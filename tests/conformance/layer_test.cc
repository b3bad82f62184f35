// What every kind of layer keeps, in a small model around it. That its numbers are right is in
// tests/unit/worker/ops; a kind that is missing here fails the first case.
#include <catch2/catch.hpp>
#include <cmath>
#include <set>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "proto/model.pb.h"
#include "tests/unit/worker/tower/models.h"
#include "tests/unit/worker/tower/test_tower.h"

namespace lockstep::worker {
namespace {

constexpr uint64_t kKey = 7;

struct LayerCase {
  std::string kind;  // field of LayerDef
  std::string model;
  // Its output for an example depends on the others of the batch, or on its place in it.
  bool sees_batch = false;
  bool has_derivative = true;  // its gradients are those of what it computes
};

std::string Layer(const std::string& name, const std::string& text) {
  return absl::StrCat("layers { name: '", name, "' ", text, " } ");
}

// Between two layers with variables, so that gradients go through it.
std::string OfNumbers(const std::string& layer) {
  return absl::StrCat("input_shape: 6 ", Layer("before", "dense { units: 6 }"),
                      Layer("layer", layer), Layer("after", "dense { units: 3 }"),
                      Layer("loss", "softmax_cross_entropy {}"));
}
std::string OfImages(const std::string& layer) {
  return absl::StrCat(
      "input_shape: [5, 4, 2] ", Layer("before", "conv2d { filters: 3 kernel: 1 no_bias: true }"),
      Layer("layer", layer), Layer("flat", "flatten {}"), Layer("after", "dense { units: 3 }"),
      Layer("loss", "softmax_cross_entropy {}"));
}
// Of the input itself.
std::string First(const std::string& input_shape, const std::string& layer) {
  return absl::StrCat("input_shape: ", input_shape, " ", Layer("layer", layer),
                      Layer("after", "dense { units: 3 }"),
                      Layer("loss", "softmax_cross_entropy {}"));
}
// With a second branch from the same layer.
std::string Joined(const std::string& layer) {
  return absl::StrCat(
      "input_shape: 6 ", Layer("before", "dense { units: 6 }"), Layer("other", "tanh {}"),
      Layer("layer", absl::StrCat("inputs: 'before' inputs: 'other' ", layer)),
      Layer("after", "dense { units: 3 }"), Layer("loss", "softmax_cross_entropy {}"));
}
std::string Last(const std::string& loss) {
  return absl::StrCat("input_shape: 6 ", Layer("before", "dense { units: 3 }"),
                      Layer("layer", loss));
}

const std::vector<LayerCase>& Cases() {
  static const auto* const cases = new std::vector<LayerCase>{
      {"dense", OfNumbers("dense { units: 5 }")},
      {"conv2d", OfImages("conv2d { filters: 4 kernel: [3, 2] strides: [2, 1] }")},
      {"max_pool", OfImages("max_pool { window: 2 padding: SAME }")},
      {"average_pool", OfImages("average_pool { window: [3, 2] strides: 1 padding: SAME }")},
      {"relu", OfNumbers("relu {}")},
      {"tanh", OfNumbers("tanh {}")},
      {"sigmoid", OfNumbers("sigmoid {}")},
      {"batch_norm", OfImages("batch_norm {}"), /*sees_batch=*/true},
      {"dropout", OfNumbers("dropout { rate: 0.4 }"), /*sees_batch=*/true},
      {"flatten", OfImages("relu {}")},
      {"add", Joined("add {}")},
      {"concatenate", Joined("concatenate {}")},
      {"softmax_cross_entropy", Last("softmax_cross_entropy {}")},
      {"l2_loss", Last("l2_loss {}")},
      {"columns", First("6", "columns { first: 2 count: 3 }")},
      {"embedding", First("3", "embedding { rows: 9 dim: 4 combiner: SUM }")},
      // Random gradients, for benchmarks.
      {"synthetic",
       absl::StrCat("input_shape: 4 ", Layer("layer", "synthetic { variables: 2 elements: 7 }"),
                    Layer("loss", "softmax_cross_entropy {}")),
       /*sees_batch=*/false, /*has_derivative=*/false},
      {"lstm", First("[5, 3]", "lstm { units: 4 }")},
      {"gru", First("[5, 3]", "gru { units: 4 }")},
      {"noise",
       absl::StrCat("input_shape: 6 ", Layer("before", "dense { units: 6 }"),
                    Layer("layer", "noise { shape: 6 }"),
                    Layer("both", "inputs: 'before' inputs: 'layer' add {}"),
                    Layer("after", "dense { units: 3 }"),
                    Layer("loss", "softmax_cross_entropy {}")),
       /*sees_batch=*/true},
      {"sigmoid_cross_entropy", Last("sigmoid_cross_entropy { target: 0.9 }")},
  };
  return *cases;
}

struct Step {
  float loss = 0;
  std::vector<Tensor> gradients;
};

Step Train(TestTower& tower, const Batch& batch, Operands& operands) {
  Step step;
  step.loss = tower.Train(batch, {operands.variable_views}, operands.gradient_views, kKey,
                          [](std::span<const int>) {});
  for (const Tensor& gradient : operands.gradients) step.gradients.push_back(gradient.Clone());
  return step;
}

Step Train(const ModelGraph& graph, const std::vector<int64_t>& planned, const Batch& batch) {
  TestTower tower(graph, {.batches = planned});
  Operands operands(graph);
  return Train(tower, batch, operands);
}

void CheckSame(const Step& a, const Step& b) {
  CHECK(a.loss == b.loss);
  REQUIRE(a.gradients.size() == b.gradients.size());
  for (size_t i = 0; i < a.gradients.size(); ++i) CHECK(SameBits(a.gradients[i], b.gradients[i]));
}

bool IsTrained(const ModelVariable& variable) { return variable.trainable && !variable.frozen; }

TEST_CASE("every kind of layer is here") {
  std::set<std::string> kinds;
  const auto* const oneof = LayerDef::descriptor()->FindOneofByName("kind");
  for (int i = 0; i < oneof->field_count(); ++i) kinds.insert(oneof->field(i)->name());
  kinds.erase("custom");  // whatever a program registers: tests/extend
  std::set<std::string> here;
  for (const LayerCase& layer : Cases()) {
    CHECK(here.insert(layer.kind).second);
    const ModelGraph graph = GraphOf(layer.model);
    bool is_used = false;
    for (const ModelNode& node : graph.nodes()) {
      const LayerDef& def = node.layer;
      is_used = is_used || (def.kind_case() != LayerDef::KIND_NOT_SET &&
                            oneof->containing_type()->FindFieldByNumber(def.kind_case())->name() ==
                                layer.kind);
    }
    INFO(layer.kind);
    CHECK(is_used);
  }
  CHECK(here == kinds);
}

TEST_CASE("a layer gives the same bits each time, in each tower, alone and beside other sizes") {
  for (const LayerCase& layer : Cases()) {
    INFO(layer.kind);
    const ModelGraph graph = GraphOf(layer.model);
    for (const int64_t size : {1, 2, 7}) {
      INFO(size);
      const Batch batch = BatchOf(graph, size);
      const Step step = Train(graph, {size}, batch);
      CHECK(std::isfinite(step.loss));
      CheckSame(step, Train(graph, {size}, batch));
      // The memory of a larger batch, with what that has left there.
      TestTower tower(graph, {.batches = {11, size}});
      Operands operands(graph);
      Train(tower, BatchOf(graph, 11, /*first=*/100), operands);
      CheckSame(step, Train(tower, batch, operands));
      CheckSame(step, Train(tower, batch, operands));
    }
  }
}

TEST_CASE(
    "examples of a batch count alike, and by themselves where a layer does not see the others") {
  for (const LayerCase& layer : Cases()) {
    if (layer.sees_batch) continue;
    INFO(layer.kind);
    const ModelGraph graph = GraphOf(layer.model);
    const Step whole = Train(graph, {5}, BatchOf(graph, 5));
    const Step two = Train(graph, {2}, BatchOf(graph, 2));
    const Step three = Train(graph, {3}, BatchOf(graph, 3, /*first=*/2));
    CHECK(whole.loss == Approx((2 * two.loss + 3 * three.loss) / 5).epsilon(1e-5));
    if (!layer.has_derivative) continue;
    for (size_t v = 0; v < whole.gradients.size(); ++v) {
      if (!IsTrained(graph.variables()[v])) continue;
      INFO(graph.variables()[v].name);
      const auto a = whole.gradients[v].as<float>();
      const auto b = two.gradients[v].as<float>();
      const auto c = three.gradients[v].as<float>();
      for (size_t i = 0; i < a.size(); ++i) {
        CHECK(a[i] == Approx((2 * b[i] + 3 * c[i]) / 5).epsilon(1e-4).margin(1e-6));
      }
    }
  }
}

TEST_CASE("a step along its gradient changes the loss by the gradient's length") {
  constexpr float kStep = 1e-2f;
  for (const LayerCase& layer : Cases()) {
    if (!layer.has_derivative) continue;
    const ModelGraph graph = GraphOf(layer.model);
    const Batch batch = BatchOf(graph, 7);
    TestTower tower(graph, {.batches = {7}});
    Operands operands(graph);
    const Step at = Train(tower, batch, operands);
    for (size_t v = 0; v < at.gradients.size(); ++v) {
      if (!IsTrained(graph.variables()[v])) continue;
      INFO(layer.kind << ": " << graph.variables()[v].name);
      const auto gradient = at.gradients[v].as<float>();
      double squares = 0;
      for (const float element : gradient) squares += double{element} * element;
      const double length = std::sqrt(squares);
      REQUIRE(length > 1e-4);
      const auto loss_at = [&](float distance) {
        Operands moved(graph);
        const auto values = moved.variables[v].as<float>();
        for (size_t i = 0; i < values.size(); ++i) {
          values[i] += static_cast<float>(distance * gradient[i] / length);
        }
        return Train(tower, batch, moved).loss;
      };
      const double slope = (double{loss_at(kStep)} - loss_at(-kStep)) / (2 * kStep);
      CHECK(slope == Approx(length).epsilon(1e-2).margin(1e-4));
    }
  }
}

}  // namespace
}  // namespace lockstep::worker
