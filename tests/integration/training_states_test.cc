// A recurrent model whose initial states come with the data.
#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/str_cat.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr char kLayers[] = R"(
  state_inputs { name: "start" units: 4 }
  layers { name: "gru" inputs: ["input", "start"] gru { units: 4 return_sequences: true } }
  layers { name: "scores" dense { units: 4 } }
  layers { name: "loss" softmax_cross_entropy {} })";

std::string ModelOf(int length) { return absl::StrCat("input_shape: [", length, ", 2] ", kLayers); }

// Sequences of `length` lines whose labels only their state tells.
struct Sequences {
  explicit Sequences(int count, int length = 3) {
    for (int s = 0; s < count; ++s) {
      const int label = (5 * s + s / 7) % 4;
      for (int i = 0; i < 4; ++i) {
        absl::StrAppend(&states, i == label ? "1" : "-1", i < 3 ? "," : "\n");
      }
      for (int t = 0; t < length; ++t) {
        absl::StrAppend(&steps, 0.1 * (s % 5), ",", 0.2 * t, ",", label, "\n");
      }
    }
  }
  std::string steps;  // of no_header CSV files
  std::string states;
};

TEST_CASE("a GRU learns from its initial states, in jobs with batches and with loads") {
  const TemporaryFolder folder;
  const Sequences train(96), test(20);
  const std::string data =
      absl::StrCat("csv { train: '", folder.Write("train.csv", train.steps), "' test: '",
                   folder.Write("test.csv", test.steps), "' label_column: '2' no_header: true } ",
                   "state_inputs { name: 'start' no_header: true train: '",
                   folder.Write("train-states.csv", train.states), "' test: '",
                   folder.Write("test-states.csv", test.states), "' }");
  for (const bool loads : {false, true}) {
    CAPTURE(loads);
    Cluster cluster(1, 2);
    cluster.StartAll(
        {.global_batch = loads ? 0 : 24,
         .max_steps = 120,
         .optimizer = "adam {} learning_rate { base: 0.03 }",
         .checkpoint = absl::StrCat("folder: '", folder.Path(loads ? "loads" : "batches"), "'"),
         .data = data,
         .model = ModelOf(3),
         // Rows are lines: 12 sequences of each worker, 6 of each tower, in batches of 3.
         .more = absl::StrCat("towers: 2 ", loads ? "local_sync { max_per_device_batch_size: 10 "
                                                    "load: 72 passes: 2 }"
                                                  : "")});
    const nlohmann::json summary = Finish(cluster);
    CHECK(summary["test_accuracy"] == 1.0);
    const nlohmann::json alone = EvaluateAlone(summary["checkpoint"]);
    CHECK(alone["examples"] == 20);
    CHECK(alone["loss"].get<double>() == Approx(summary["test_loss"].get<double>()).epsilon(1e-6));
  }
}

TEST_CASE("a GRU learns from its initial states where each line is a sequence") {
  const TemporaryFolder folder;
  const Sequences train(96, 1), test(20, 1);
  Cluster cluster(1, 2);
  cluster.StartAll(
      {.global_batch = 24,
       .max_steps = 120,
       .optimizer = "adam {} learning_rate { base: 0.03 }",
       .checkpoint = absl::StrCat("folder: '", folder.Path("saved"), "'"),
       .data = absl::StrCat("csv { train: '", folder.Write("train.csv", train.steps), "' test: '",
                            folder.Write("test.csv", test.steps),
                            "' label_column: '2' no_header: true } ",
                            "state_inputs { name: 'start' no_header: true train: '",
                            folder.Write("train-states.csv", train.states), "' test: '",
                            folder.Write("test-states.csv", test.states), "' }"),
       .model = ModelOf(1),
       .more = "towers: 2"});
  const nlohmann::json summary = Finish(cluster);
  CHECK(summary["test_accuracy"] == 1.0);
  CHECK(EvaluateAlone(summary["checkpoint"])["examples"] == 20);
}

}  // namespace
}  // namespace lockstep::test
