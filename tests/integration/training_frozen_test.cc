// Frozen layers in a whole run: nobody pushes a gradient for their variables, and every step
// closes.
#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/checkpoint/checkpoint.h"
#include "common/config/text_proto.h"
#include "common/model/graph.h"
#include "common/model/initial_value.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr char kModel[] = R"(
  input_shape: [4]
  layers { name: "numbers" columns { first: 2 count: 2 } }
  layers { name: "norm" frozen: true batch_norm {} }
  layers { name: "mix" frozen: true dense { units: 4 kernel_initializer { he {} } } }
  layers { name: "mixed" tanh {} }
  layers { name: "ids" inputs: "input" columns { first: 0 count: 2 } }
  layers { name: "kept" frozen: true embedding { rows: 40 dim: 3 } }
  layers { name: "learned" inputs: "ids" embedding { rows: 40 dim: 3 } }
  layers { name: "all" inputs: ["mixed", "kept", "learned"] concatenate {} }
  layers { name: "scores" dense { units: 3 } }
  layers { name: "last" frozen: true batch_norm {} }
  layers { name: "loss" softmax_cross_entropy {} })";
constexpr uint64_t kSeed = 5;

std::string Examples() {
  std::string csv;
  for (int i = 0; i < 240; ++i) {
    absl::StrAppend(&csv, 7 * i % 40, ",", 11 * i % 40, ",", i % 5, ".5,-", i % 3, ",",
                    7 * i % 40 % 3, "\n");
  }
  return csv;
}

TEST_CASE("frozen variables keep their first values through a run, and the others learn") {
  const TemporaryFolder folder;
  folder.Write("train.csv", Examples());
  Cluster cluster(2, 2);
  cluster.StartAll({.global_batch = 24,
                    .max_steps = 40,
                    .optimizer = "adam { lazy: true } learning_rate { base: 0.05 }",
                    .checkpoint = "folder: '" + folder.path() + "'",
                    .data = absl::StrCat("csv { train: '", folder.Path("train.csv"),
                                         "' label_column: '4' no_header: true }"),
                    .model = kModel,
                    // Both tables in parts.
                    .more = absl::StrCat("max_part_bytes: 100 seed: ", kSeed)});
  const std::vector<double> losses = Losses(Finish(cluster));
  REQUIRE(losses.size() == 40);
  CHECK(losses.back() < 0.7 * losses.front());

  ModelDef def;
  REQUIRE(ParseTextProto("model", kModel, &def).ok());
  const auto graph = ModelGraph::Build(def);
  REQUIRE(graph.ok());
  const auto checkpoint = CheckpointReader::Open(folder.Path("ckpt-40"));
  REQUIRE(checkpoint.ok());
  int frozen = 0;
  for (const ModelVariable& variable : graph->variables()) {
    if (variable.name == ModelGraph::kLossVariable) continue;
    CAPTURE(variable.name);
    const auto value = checkpoint->Read(variable.name);
    REQUIRE(value.ok());
    Tensor first(variable.dtype, variable.shape);
    FillInitialValue(variable.initializer, kSeed, variable.name, first.view());
    int64_t changed = 0;
    for (int64_t i = 0; i < first.num_elements(); ++i) {
      changed += value->as<float>()[i] != first.as<float>()[i];
    }
    CHECK((changed == 0) == variable.frozen);
    frozen += variable.frozen;
  }
  CHECK(frozen == 4 + 2 + 1 + 4);
}

}  // namespace
}  // namespace lockstep::test
