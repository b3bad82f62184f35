// A recurrent model learns which character comes next, and says the same of it wherever it is
// asked.
#include <catch2/catch.hpp>
#include <cmath>
#include <string>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "tests/integration/training_run.h"

namespace lockstep::test {
namespace {

constexpr char kModel[] = R"(
  input_shape: 16
  layers { name: "characters" embedding { rows: 9 dim: 8 combiner: SEQUENCE } }
  layers { name: "LAYER" LAYER { units: 32 return_sequences: true } }
  layers { name: "scores" dense { units: 9 } }
  layers { name: "loss" softmax_cross_entropy {} })";

TEST_CASE("an LSTM and a GRU learn a text whose next character follows from two before it") {
  const TemporaryFolder folder;
  std::string text;
  for (int i = 0; i < 2000; ++i) text += "abacadbcbdef gab"[i % 16];
  for (const char* layer : {"lstm", "gru"}) {
    CAPTURE(layer);
    Cluster cluster(2, 2);
    cluster.StartAll({.global_batch = 16,
                      .max_steps = 150,
                      .optimizer = "adam {} learning_rate { base: 0.02 }",
                      .checkpoint = absl::StrCat("folder: '", folder.Path(layer), "'"),
                      .evaluation = "batch: 5",
                      .data = absl::StrCat("text { path: '", folder.Write("text", text),
                                           "' length: 16 held_out: 0.2 }"),
                      .model = absl::StrReplaceAll(kModel, {{"LAYER", layer}})});
    const nlohmann::json summary = Finish(cluster);
    // What a sequence begins with is not known from the text before it.
    CHECK(summary["test_bits_per_character"] < 0.3);
    CHECK(summary["test_accuracy"] > 0.9);
    CHECK(summary["test_bits_per_character"].get<double>() ==
          Approx(summary["test_loss"].get<double>() / std::log(2)));
    const nlohmann::json alone = EvaluateAlone(summary["checkpoint"]);
    CHECK(alone["loss"].get<double>() == Approx(summary["test_loss"].get<double>()).epsilon(1e-6));
    CHECK(alone["accuracy"].get<double>() == Approx(summary["test_accuracy"].get<double>()));
    // Wherever the text and the checkpoint are now.
    const auto evaluate = [&](const std::string& data) {
      return RunToEnd({Binary("worker/predict"), "evaluate",
                       "--checkpoint=" + summary["checkpoint"].get<std::string>(),
                       "--data=" + folder.Write("moved", data)},
                      absl::Seconds(30));
    };
    const Ended moved = evaluate(text);
    INFO(moved.output);
    CHECK(moved.exit_code == 0);
    CHECK_THAT(moved.output, Catch::Matchers::Contains(absl::StrFormat(
                                 "accuracy %.4f", alone["accuracy"].get<double>())));
    const Ended unknown = evaluate(text + "z");
    CHECK(unknown.exit_code == 78);
    CHECK_THAT(unknown.output,
               Catch::Matchers::Contains("expected one of the 8 characters that the model knows") &&
                   Catch::Matchers::Contains("got \"z\". Remedy: "));
  }
}

}  // namespace
}  // namespace lockstep::test
