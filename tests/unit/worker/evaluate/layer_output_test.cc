#include "worker/evaluate/layer_output.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <set>

#include "tests/unit/worker/evaluate/fakes.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/evaluate/evaluate_range.h"
#include "worker/evaluate/prediction.h"
#include "worker/ops/cpu/ops.h"

namespace lockstep::worker {
namespace {

using Catch::Matchers::Contains;
using test::CountingTestSet;

constexpr char kModel[] = R"(
    input_shape: 2
    layers { name: "hidden" dense { units: 3 } }
    layers { name: "relu" relu {} }
    layers { name: "both" inputs: ["hidden", "relu"] concatenate {} }
    layers { name: "scores" dense { units: 3 } }
    layers { name: "loss" softmax_cross_entropy {} })";

constexpr char kGenerator[] = R"(
    input_shape: 2
    layers { name: "d_real" dense { units: 1 } }
    layers { name: "d_loss" sigmoid_cross_entropy { target: 1 } }
    layers { name: "noise" noise { shape: 3 } }
    layers { name: "g_made" dense { units: 2 } }
    layers { name: "both" inputs: ["g_made", "input"] add {} }
    layers { name: "d_made" variables_of: "d_real" dense { units: 1 } }
    layers { name: "g_loss" sigmoid_cross_entropy { target: 1 } })";

// Element i of each variable is (i % 5 - 2) / 4.
TrainedModel ModelOf(const char* text, const std::string& layer) {
  TrainedModel model;
  model.graph = test::MakeGraph(text);
  for (const ModelVariable& variable : model.graph.variables()) {
    Tensor& value = model.variables.emplace_back(variable.dtype, variable.shape);
    for (int64_t i = 0; i < value.num_elements(); ++i) value.as<float>()[i] = (i % 5 - 2) / 4.0f;
  }
  for (const Tensor& value : model.variables) model.views.push_back(value.view());
  if (!layer.empty()) model.graph = *CutAtLayer(model.graph, layer);
  return model;
}

std::vector<Prediction> PredictAll(const TrainedModel& model, const TestSet& examples,
                                   const PredictOptions& options) {
  CpuDevice device(1);
  auto tower = Tower::Create(
      model.graph, &device, cpu::Ops(),
      {.batches = BatchSizes(options.end, options.batch), .training = false, .whole_tables = true});
  REQUIRE(tower.ok());
  std::vector<Prediction> all;
  CHECK(PredictRange(tower->get(), model, examples, options, [&](const Prediction& prediction) {
          all.push_back(prediction);
        }).ok());
  return all;
}

std::vector<std::vector<float>> OutputsOf(const std::string& layer, const PredictOptions& options) {
  const TrainedModel model = ModelOf(kGenerator, layer);
  const auto zeros = MakeZeroExamples(model.graph, options.end);
  std::vector<std::vector<float>> outputs;
  for (const Prediction& prediction : PredictAll(model, *zeros, options)) {
    outputs.push_back(prediction.outputs);
  }
  return outputs;
}

TEST_CASE("the output of a layer is what its formula gives, whoever takes it") {
  const CountingTestSet examples(3, true);
  const std::vector<Prediction> hidden =
      PredictAll(ModelOf(kModel, "hidden"), examples, {.end = 3, .batch = 2});
  const std::vector<Prediction> relu =
      PredictAll(ModelOf(kModel, "relu"), examples, {.end = 3, .batch = 2});
  REQUIRE(hidden.size() == 3);
  REQUIRE(relu.size() == 3);
  // Row i of the examples is (i, 10 i); the kernel [2, 3] counts -2, -1, 0, 1, 2, -2 quarters.
  for (int i = 0; i < 3; ++i) {
    const double column[] = {(-2 * i + 10 * i - 2) / 4.0, (-i + 20 * i - 1) / 4.0,
                             (-20 * i + 0) / 4.0};
    REQUIRE(hidden[i].outputs.size() == 3);
    REQUIRE(relu[i].outputs.size() == 3);
    CHECK(hidden[i].true_outputs.empty());
    for (int k = 0; k < 3; ++k) {
      CHECK(hidden[i].outputs[k] == Approx(column[k]));
      CHECK(relu[i].outputs[k] == Approx(std::max(column[k], 0.0)));
    }
  }
}

TEST_CASE("the scores of a classifier are those that its probabilities are made of") {
  const CountingTestSet examples(4, false);
  const PredictOptions options{.end = 4, .batch = 4};
  const std::vector<Prediction> scores = PredictAll(ModelOf(kModel, "scores"), examples, options);
  const std::vector<Prediction> classes = PredictAll(ModelOf(kModel, ""), examples, options);
  for (int i = 0; i < 4; ++i) {
    double sum = 0;
    for (const float score : scores[i].outputs) sum += std::exp(score);
    const float of_class = scores[i].outputs[classes[i].label];
    CHECK(of_class == *std::max_element(scores[i].outputs.begin(), scores[i].outputs.end()));
    CHECK(std::exp(of_class) / sum == Approx(classes[i].probability));
  }
}

TEST_CASE("a layer depends on examples, or on noise alone") {
  CHECK(ReadsExamples(ModelOf(kGenerator, "d_real").graph));
  CHECK(ReadsExamples(ModelOf(kGenerator, "both").graph));
  CHECK_FALSE(ReadsExamples(ModelOf(kGenerator, "g_made").graph));
  CHECK(ReadsExamples(ModelOf(kModel, "").graph));
  CHECK_FALSE(MakeZeroExamples(ModelOf(kGenerator, "g_made").graph, 3)->Read(1, 4).ok());
}

TEST_CASE("noise is a function of the seed and the example") {
  const PredictOptions options{.end = 10, .batch = 4, .seed = 7};
  const auto noise = OutputsOf("noise", options);
  const auto made = OutputsOf("g_made", options);
  CHECK(noise == OutputsOf("noise", options));
  CHECK(std::set(noise.begin(), noise.end()).size() == 10);
  CHECK(noise != OutputsOf("noise", {.end = 10, .batch = 4, .seed = 8}));
  const auto fewer = OutputsOf("noise", {.end = 6, .batch = 4, .seed = 7});
  CHECK(fewer == std::vector(noise.begin(), noise.begin() + 6));
  // The kernel [3, 2] counts -2, -1, 0, 1, 2, -2 quarters.
  for (int i = 0; i < 10; ++i) {
    CHECK(made[i][0] == Approx((-2 * noise[i][0] + 2 * noise[i][2] - 2) / 4).margin(1e-6));
    CHECK(made[i][1] ==
          Approx((-noise[i][0] + noise[i][1] - 2 * noise[i][2] - 1) / 4).margin(1e-6));
  }
}

TEST_CASE("a wrong name is refused with the layers that there are") {
  const ModelGraph graph = test::MakeGraph(kModel);
  for (const char* name : {"hiden", "loss", "input", ""}) {
    const absl::Status status = CutAtLayer(graph, name).status();
    CHECK(absl::IsInvalidArgument(status));
    CHECK_THAT(std::string(status.message()),
               Contains("--layer: expected a layer of the model that is no loss, got \"" +
                        std::string(name) + "\"") &&
                   Contains("Remedy: name one of hidden, relu, both, scores"));
  }
  CHECK_THAT(std::string(CutAtLayer(graph, "hiden").status().message()),
             Contains("did you mean \"hidden\"? Remedy: "));
  CHECK_THAT(std::string(CutAtLayer(graph, "nope").status().message()),
             Contains("got \"nope\". Remedy: "));
}

}  // namespace
}  // namespace lockstep::worker
