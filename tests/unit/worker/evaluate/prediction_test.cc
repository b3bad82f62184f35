#include "worker/evaluate/prediction.h"

#include <catch2/catch.hpp>

#include "tests/unit/worker/evaluate/fakes.h"

namespace lockstep::worker {
namespace {

using test::CountingTestSet;
using test::CountingTower;

constexpr char kClassifier[] =
    "input_shape: 2 layers { name: 'd' dense { units: 3 } } "
    "layers { name: 'loss' softmax_cross_entropy {} }";
constexpr char kRegression[] =
    "input_shape: 2 layers { name: 'd' dense { units: 1 } } layers { name: 'loss' l2_loss {} }";

std::vector<Prediction> PredictAll(Tower& tower, const TestSet& examples, const char* graph,
                                   int64_t end, int64_t batch) {
  TrainedModel model;
  model.graph = test::MakeGraph(graph);
  std::vector<Prediction> all;
  CHECK(PredictRange(&tower, model, examples, {end, batch}, [&](const Prediction& prediction) {
          all.push_back(prediction);
        }).ok());
  return all;
}

TEST_CASE("every example is predicted once, in order, whatever the batch") {
  const CountingTestSet examples(10, true);
  for (const int64_t batch : {1, 3, 10, 99}) {
    CAPTURE(batch);
    CountingTower tower(1);
    const auto all = PredictAll(tower, examples, kClassifier, 8, batch);
    REQUIRE(all.size() == 8);
    for (int64_t i = 0; i < 8; ++i) {
      CHECK(all[i].index == i);
      CHECK(all[i].label == (i + 1) % 3);
      CHECK(all[i].true_label == i % 3);
      CHECK(all[i].probability == 0.5f);
    }
  }
}

TEST_CASE("examples without labels are predicted without") {
  const CountingTestSet examples(3, false);
  CountingTower tower;
  const auto all = PredictAll(tower, examples, kClassifier, 3, 2);
  REQUIRE(all.size() == 3);
  CHECK_FALSE(all[2].true_label.has_value());
  CHECK(ToLine(all[2]) == "2  2  0.5000");
}

TEST_CASE("a regression gives its outputs and the true ones") {
  const CountingTestSet examples(3, true, false);
  CountingTower tower(0, false);
  const auto all = PredictAll(tower, examples, kRegression, 3, 2);
  REQUIRE(all.size() == 3);
  CHECK(all[2].outputs == std::vector<float>{4});
  CHECK(all[2].true_outputs == std::vector<float>{-2});
  CHECK(ToLine(all[2]) == "2  4  true  -2");
}

// Two labels for each of its examples: i and i + 1.
class SequenceTestSet final : public TestSet {
 public:
  int64_t num_examples() const override { return 3; }
  bool has_labels() const override { return true; }
  absl::StatusOr<Batch> Read(int64_t begin, int64_t end) const override {
    Batch batch{Tensor::Zeros(DType::kFloat32, {end - begin, 2}),
                Tensor(DType::kInt32, {end - begin, 2})};
    for (int64_t i = 0; i < 2 * (end - begin); ++i) {
      batch.labels.as<int32_t>()[i] = static_cast<int32_t>(begin + i / 2 + i % 2);
    }
    return batch;
  }
};

// Class 2 at every time step.
class SequenceTower final : public Tower {
 public:
  absl::StatusOr<std::span<const TowerGradient>> Train(const Batch&, const VariableValues&,
                                                       std::span<const MutableTensorView>,
                                                       uint64_t) override {
    return absl::UnimplementedError("not of a prediction");
  }
  absl::Status Finish() override { return absl::OkStatus(); }
  float loss() const override { return 0; }
  absl::StatusOr<Evaluation> Evaluate(const Batch&, const VariableValues&) override {
    return absl::UnimplementedError("not of a prediction");
  }
  absl::StatusOr<TensorView> Predict(const Batch& batch, const VariableValues&, uint64_t) override {
    scores_ = Tensor::Zeros(DType::kFloat32, {2 * batch.size(), 3});
    for (int64_t i = 2; i < scores_.num_elements(); i += 3) scores_.as<float>()[i] = 1;
    return TensorView(scores_.view());
  }

 private:
  Tensor scores_;
};

TEST_CASE("sequences have a prediction for each time step, counted through all") {
  SequenceTower tower;
  const auto all =
      PredictAll(tower, SequenceTestSet(),
                 "input_shape: 2 layers { name: 'e' embedding { rows: 4 dim: 3 "
                 "combiner: SEQUENCE } } layers { name: 'l' softmax_cross_entropy {} }",
                 3, 2);
  REQUIRE(all.size() == 6);
  for (int64_t i = 0; i < 6; ++i) {
    CHECK(all[i].index == i);
    CHECK(all[i].label == 2);
    CHECK(all[i].true_label == i / 2 + i % 2);
  }
}

TEST_CASE("a line marks a class that is wrong") {
  Prediction prediction;
  prediction.index = 12;
  prediction.label = 3;
  prediction.probability = 0.98768f;
  CHECK(ToLine(prediction) == "12  3  0.9877");
  prediction.true_label = 3;
  CHECK(ToLine(prediction) == "12  3  0.9877  3");
  prediction.true_label = 5;
  CHECK(ToLine(prediction) == "12  3  0.9877  5  wrong");
}

TEST_CASE("an error of the examples ends the prediction") {
  const CountingTestSet examples(3, true);
  CountingTower tower;
  TrainedModel model;
  model.graph = test::MakeGraph(kClassifier);
  int calls = 0;
  CHECK_FALSE(
      PredictRange(&tower, model, examples, {5, 2}, [&](const Prediction&) { ++calls; }).ok());
  CHECK(calls == 2);
}

}  // namespace
}  // namespace lockstep::worker
