#include "worker/tower/batch_rows.h"

#include <catch2/catch.hpp>
#include <set>

#include "common/base/philox.h"
#include "common/job/example_spec.h"
#include "tests/unit/worker/tower/models.h"
#include "tests/unit/worker/tower/test_tower.h"

namespace lockstep::worker {
namespace {

const TowerGroup::GradientReady kNobody = [](std::span<const int>) {};

int VariableNamed(const ModelGraph& graph, const std::string& name) {
  for (size_t v = 0; v < graph.variables().size(); ++v) {
    if (graph.variables()[v].name == name) return static_cast<int>(v);
  }
  FAIL("no variable " << name);
  return -1;
}

TEST_CASE("the rows of a step are those of all its batches, ascending, each once") {
  const ModelGraph graph = GraphOf(R"pb(
    input_shape: [ 5 ]
    layers {
      name: "few"
      columns { first: 1 count: 4 }
    }
    layers {
      name: "a"
      columns { first: 1 count: 2 }
    }
    layers {
      name: "left"
      embedding { rows: 1000 dim: 2 combiner: SUM }
    }
    layers {
      name: "right"
      embedding { rows: 16777216 dim: 2 combiner: SUM }
      inputs: "few"
    }
    layers {
      name: "sum"
      add {}
      inputs: [ "left", "right" ]
    }
    layers {
      name: "loss"
      softmax_cross_entropy {}
    }
  )pb");
  BatchRows batch_rows(graph);
  CHECK(batch_rows.rows().size() == graph.variables().size());
  const auto batch_of = [](std::vector<float> features) {
    Batch batch{Tensor(DType::kFloat32, Shape({static_cast<int64_t>(features.size()) / 5, 5})), {}};
    std::ranges::copy(features, batch.features.as<float>().begin());
    return batch;
  };
  std::vector<Batch> batches;
  batches.push_back(batch_of({0.5f, 63, 64, 999, 3, -1, 128, 64, 3, 999}));
  batches.push_back(batch_of({9, 0, 64, 65, 16777215}));
  const auto rows_of = [&](const char* name) {
    const std::span<const int64_t> rows = batch_rows.rows()[VariableNamed(graph, name)];
    return std::vector<int64_t>(rows.begin(), rows.end());
  };
  // Columns 2 and 3 feed the left table, 1 to 4 the right one.
  batch_rows.Collect(batches);
  CHECK(rows_of("left/table") == std::vector<int64_t>{3, 64, 65, 999});
  CHECK(rows_of("right/table") == std::vector<int64_t>{0, 3, 63, 64, 65, 128, 999, 16777215});
  CHECK(batch_rows.rows()[graph.loss_variable()].empty());

  batches.pop_back();
  batch_rows.Collect(batches);
  CHECK(rows_of("left/table") == std::vector<int64_t>{3, 64, 999});
  CHECK(rows_of("right/table") == std::vector<int64_t>{3, 63, 64, 128, 999});
}

TEST_CASE("what a model expects of its data tells the columns that are row indices") {
  const ExampleSpec spec = ExampleSpecOf(GraphOf(kWideAndDeep));
  CHECK(spec.input_shape == Shape({7}));
  CHECK(spec.classifier);
  CHECK(spec.num_outputs == 4);
  REQUIRE(spec.row_indices.size() == 2);
  for (const ExampleSpec::RowIndices& indices : spec.row_indices) {
    CHECK(indices.first == 0);
    CHECK(indices.count == 3);
    CHECK(indices.rows == 11);
  }
  CHECK(ExampleSpecOf(GraphOf(kRegression)).row_indices.empty());
}

TEST_CASE("labels are probabilities where any of the losses that take them says so") {
  const char* const kInput = "input_shape: [3] layers { name: 'scores' dense { units: 2 } } ";
  const std::string l2 = "layers { name: 'l2' inputs: 'scores' l2_loss {} } ";
  const std::string sigmoid =
      "layers { name: 'sigmoid' inputs: 'scores' sigmoid_cross_entropy {} } ";
  CHECK(ExampleSpecOf(GraphOf(kInput + l2 + sigmoid)).predicts_probabilities);
  CHECK(ExampleSpecOf(GraphOf(kInput + sigmoid + l2)).predicts_probabilities);
  CHECK_FALSE(ExampleSpecOf(GraphOf(kInput + l2)).predicts_probabilities);
}

TEST_CASE("a tower that is given only the rows of its batch computes the same bits") {
  const ModelGraph graph = GraphOf(kWideAndDeep);
  TestTower tower(graph, {.batches = {2}, .whole_tables = true});
  BatchRows batch_rows(graph);
  for (int64_t first : {0, 2, 4}) {
    std::vector<Batch> batch;
    batch.push_back(BatchOf(graph, 2, first));
    batch_rows.Collect(batch);
    Operands whole(graph);
    const float loss =
        tower.Train(batch[0], {whole.variable_views}, whole.gradient_views, 1, kNobody);
    Operands dense(graph);
    PartOperands part(graph, &dense, batch_rows.rows());
    CHECK(loss ==
          tower.Train(batch[0], {part.views, batch_rows.rows()}, part.gradient_views, 1, kNobody));
    CHECK(tower->Evaluate(batch[0], {part.views, batch_rows.rows()}).value().loss_sum ==
          tower->Evaluate(batch[0], {whole.variable_views}).value().loss_sum);
    for (size_t v = 0; v < graph.variables().size(); ++v) {
      INFO(graph.variables()[v].name);
      if (!graph.variables()[v].sparse) {
        CHECK(SameBits(whole.gradients[v], dense.gradients[v]));
        continue;
      }
      const std::span<const int64_t> rows = batch_rows.rows()[v];
      CHECK(rows.size() < 11);
      const int64_t dim = graph.variables()[v].shape.dim(1);
      const std::span<const float> all = whole.gradients[v].as<float>();
      const std::span<const float> got = part.gradient_views[v].as<float>();
      std::vector<float> spread(all.size(), 0.0f);
      for (size_t i = 0; i < got.size(); ++i) spread[rows[i / dim] * dim + i % dim] = got[i];
      CHECK(spread == std::vector<float>(all.begin(), all.end()));
    }
  }
}

TEST_CASE("towers share the rows of all their batches, few or many") {
  const ModelGraph graph = GraphOf(kWideAndDeep);
  constexpr int kTowers = 3;
  TestGroup group(graph, {.batch_per_tower = 2, .reducer = {.towers = kTowers}});
  TestTower alone(graph, {.batches = {2}, .row_examples = 2 * kTowers, .whole_tables = true});
  BatchRows batch_rows(graph);
  for (int64_t step = 0; step < 6; ++step) {
    std::vector<Batch> batches;
    for (int t = 0; t < kTowers; ++t) {
      // Sometimes the same examples for all: fewer rows.
      batches.push_back(BatchOf(graph, 2, step % 2 == 0 ? step * 6 + t * 2 : step));
    }
    batch_rows.Collect(batches);
    Operands whole(graph);
    PartOperands mean(graph, &whole, batch_rows.rows());
    std::vector<int> announced;
    group
        ->Train(batches, {mean.views, batch_rows.rows()}, mean.gradient_views, 1,
                [&](std::span<const int> variables) {
                  announced.insert(announced.end(), variables.begin(), variables.end());
                })
        .value();
    CHECK(announced.size() == graph.variables().size());
    std::vector<Operands> each;
    std::vector<PartOperands> parts;
    for (int t = 0; t < kTowers; ++t) {
      each.emplace_back(graph);
      parts.emplace_back(graph, &each.back(), batch_rows.rows());
      alone.Train(batches[t], {parts.back().views, batch_rows.rows()}, parts.back().gradient_views,
                  1, kNobody);
    }
    for (size_t v = 0; v < graph.variables().size(); ++v) {
      const std::span<const float> got = mean.gradient_views[v].as<float>();
      for (size_t i = 0; i < got.size(); ++i) {
        const float sum = parts[0].gradient_views[v].as<float>()[i] +
                          parts[1].gradient_views[v].as<float>()[i] +
                          parts[2].gradient_views[v].as<float>()[i];
        if (got[i] != sum * (1.0f / kTowers)) FAIL(graph.variables()[v].name << " at " << i);
      }
    }
  }
}

TEST_CASE("several towers leave out what is frozen") {
  std::string text = kWideAndDeep;
  text.insert(text.find("name: \"deep\""), "frozen: true ");
  const ModelGraph graph = GraphOf(text);
  TestGroup group(graph, {.batch_per_tower = 3, .reducer = {.towers = 2}});
  std::vector<Batch> batches;
  for (int t = 0; t < 2; ++t) batches.push_back(BatchOf(graph, 3, t * 3));
  Operands operands(graph);
  std::set<int> announced;
  for (int step = 0; step < 3; ++step) {
    group
        ->Train(batches, {operands.variable_views}, operands.gradient_views, 1,
                [&](std::span<const int> variables) {
                  announced.insert(variables.begin(), variables.end());
                })
        .value();
  }
  CHECK(announced.size() == graph.variables().size() - 1);
  CHECK(announced.count(VariableNamed(graph, "deep/table")) == 0);
}

}  // namespace
}  // namespace lockstep::worker
