#include "worker/evaluate/trained_model.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "absl/strings/match.h"
#include "tests/support/temporary_folder.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/cpu/ops.h"
#include "worker/tower/tower.h"

namespace lockstep::worker {
namespace {

using lockstep::test::TemporaryFolder;

constexpr char kModel[] =
    "name: 'tiny' input_shape: 2 layers { name: 'd' dense { units: 3 } } "
    "layers { name: 'loss' softmax_cross_entropy {} }";
constexpr char kJob[] = "name: 'job' data { scale: 0.5 idx { test_images: '/x' } }";

struct Contents {
  std::string model = kModel;
  std::string job = kJob;
  Shape kernel_shape = {2, 3};
  bool bias = true;
  bool kernel_average = false;
};

// d/kernel = 1 .. 6, d/bias = 0.5, 0, -0.5.
std::string WriteModel(const TemporaryFolder& root, const Contents& contents) {
  Tensor kernel(DType::kFloat32, contents.kernel_shape), bias(DType::kFloat32, {3});
  for (size_t i = 0; i < kernel.as<float>().size(); ++i) kernel.as<float>()[i] = i + 1;
  for (size_t i = 0; i < 3; ++i) bias.as<float>()[i] = 0.5f - 0.5f * i;
  Tensor average;
  std::vector<NamedTensor> tensors = {{"d/kernel", kernel.view()}};
  if (contents.bias) tensors.push_back({"d/bias", bias.view()});
  if (contents.kernel_average) {
    average = Tensor::Zeros(DType::kFloat32, contents.kernel_shape);
    tensors.push_back({"d/kernel/ExponentialMovingAverage", average.view()});
  }
  Manifest manifest;
  manifest.step = 30;
  manifest.model = contents.model;
  manifest.job = contents.job;
  auto shard = WriteShard(CheckpointFolder(root.path(), 30), 0, 1, tensors);
  REQUIRE(shard.ok());
  manifest.shards = {*shard};
  auto folder = CommitCheckpoint(root.path(), manifest, 0);
  REQUIRE(folder.ok());
  return *folder;
}

TEST_CASE("a checkpoint alone gives the model, its job and its variables in the graph's order") {
  const TemporaryFolder root;
  const auto model = TrainedModel::Load(WriteModel(root, {}));
  REQUIRE(model.ok());
  CHECK(model->step == 30);
  CHECK(model->job.data().scale() == 0.5);
  CHECK(model->example_spec().input_shape == Shape({2}));
  CHECK(model->example_spec().classifier);
  CHECK(model->example_spec().num_outputs == 3);
  const auto& variables = model->graph.variables();
  REQUIRE(model->views.size() == variables.size());
  for (size_t i = 0; i < variables.size(); ++i) {
    CHECK(model->views[i].shape == variables[i].shape);
    CHECK(model->views[i].data == model->variables[i].data());
    if (variables[i].name == "d/kernel") CHECK(model->views[i].as<float>()[5] == 6);
    if (variables[i].name == "d/bias") CHECK(model->views[i].as<float>()[2] == -0.5f);
    if (variables[i].name == "train/loss") CHECK(model->views[i].as<float>()[0] == 0);
  }
}

TEST_CASE("a job that evaluates averages gives them in place of the values that have one") {
  const std::string job = std::string(kJob) + " evaluation { use_averages: true }";
  for (const bool use : {false, true}) {
    for (const bool has : {false, true}) {
      CAPTURE(use, has);
      const TemporaryFolder root;
      const auto model =
          TrainedModel::Load(WriteModel(root, {.job = use ? job : kJob, .kernel_average = has}));
      REQUIRE(model.ok());
      CHECK(model->has_averages == (use && has));
      const auto& variables = model->graph.variables();
      for (size_t i = 0; i < variables.size(); ++i) {
        const float last = model->views[i].as<float>().back();
        if (variables[i].name == "d/kernel") CHECK(last == (use && has ? 0 : 6));
        if (variables[i].name == "d/bias") CHECK(last == -0.5f);
      }
    }
  }
}

TEST_CASE("the loaded model computes what its variables say") {
  const TemporaryFolder root;
  const auto model = TrainedModel::Load(WriteModel(root, {}));
  REQUIRE(model.ok());
  CpuDevice device(1);
  auto tower =
      Tower::Create(model->graph, &device, cpu::Ops(), {.batches = {1}, .training = false});
  REQUIRE(tower.ok());
  Batch batch{Tensor(DType::kFloat32, {1, 2}), Tensor()};
  batch.features.as<float>()[0] = 0.5f;
  batch.features.as<float>()[1] = -0.25f;
  const auto probabilities = (*tower)->Predict(batch, {model->views}, 0).value().as<float>();
  REQUIRE(probabilities.size() == 3);
  // x W + b = 0.5 (1,2,3) - 0.25 (4,5,6) + (0.5,0,-0.5) = (0,-0.25,-0.5)
  const double expected[] = {1, std::exp(-0.25), std::exp(-0.5)};
  const double sum = expected[0] + expected[1] + expected[2];
  for (int k = 0; k < 3; ++k) CHECK(probabilities[k] == Approx(expected[k] / sum).epsilon(1e-5));
}

TEST_CASE("a variable that is missing or of another shape is DATA_LOSS naming it") {
  const TemporaryFolder root;
  const absl::Status missing = TrainedModel::Load(WriteModel(root, {.bias = false})).status();
  CHECK(missing.code() == absl::StatusCode::kDataLoss);
  CHECK(absl::StrContains(missing.message(), "'d/bias'"));
  const absl::Status shape =
      TrainedModel::Load(WriteModel(root, {.kernel_shape = {3, 2}})).status();
  CHECK(shape.code() == absl::StatusCode::kDataLoss);
  CHECK(absl::StrContains(shape.message(), "'d/kernel' is float32 [3,2], expected float32 [2,3]"));
}

TEST_CASE("a model or job that cannot be read names the manifest and the place") {
  const TemporaryFolder root;
  for (const Contents& contents :
       {Contents{.model = "layers { name: 'x' wormhole {} }"}, Contents{.model = "input_shape: 2"},
        Contents{.model = ""}, Contents{.job = "no_such_field: 1"}}) {
    const std::string folder = WriteModel(root, contents);
    const absl::Status status = TrainedModel::Load(folder).status();
    CHECK(status.code() == absl::StatusCode::kInvalidArgument);
    CHECK(absl::StartsWith(status.message(), folder + "/manifest.json: "));
  }
}

}  // namespace
}  // namespace lockstep::worker
