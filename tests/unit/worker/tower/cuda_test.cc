// Training on a GPU, over a driver and libraries that the host imitates.
#include <catch2/catch.hpp>
#include <iterator>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "common/base/exit_code.h"
#include "tests/support/cuda/fake_cublas_lt.h"
#include "tests/support/cuda/fake_cudnn.h"
#include "tests/support/cuda/fake_gpu.h"
#include "tests/support/test_device.h"
#include "tests/unit/worker/tower/group_training.h"
#include "tests/unit/worker/tower/orders_of_work.h"
#include "worker/ops/cuda/ops.h"

namespace lockstep::worker {
namespace {

using cuda::CudaDevice;
using test::FakeDriver;

constexpr uint64_t kSeeds = 150;  // for each model

struct Layout {
  int towers = 1;
  int devices = 1;
};
constexpr Layout kLayouts[] = {{1, 1}, {2, 1}, {2, 2}};

class FakeGpus {
 public:
  explicit FakeGpus(int count) {
    for (int i = 0; i < count; ++i) gpus_.push_back(test::MakeFakeGpu(/*seed=*/1, i));
  }
  TowerDevices towers() const { return test::TowersOn(gpus_); }

 private:
  std::vector<std::shared_ptr<Device>> gpus_;
};

// Of cuBLASLt and cuDNN.
int64_t LiveObjects() {
  return test::LiveCublasLtObjects() + static_cast<int64_t>(test::FakeCudnn::Current().live());
}

// Before a test makes its GPUs: the first GPU of a program makes the libraries, too.
int64_t ObjectsAtFirst() {
  test::MakeFakeGpu(1);
  return LiveObjects();
}

TEST_CASE("a GPU trains to the same bits in any order of its work") {
  for (size_t model = 0; model < Models().size(); ++model) {
    const ModelGraph graph = GraphOf(Models()[model]);
    for (const auto [towers, devices] : kLayouts) {
      const FakeGpus gpus(devices);
      const auto group = *MakeGroup(graph, gpus.towers(), cuda::Ops(), OptionsOf(towers, model));
      const std::vector<Gradients> wanted = TrainVariants(group.get(), graph, towers);
      CAPTURE(model, towers, devices);
      CHECK(FirstOtherOrder({group.get(), &graph, towers, FakeDriver::Current().work()}, wanted,
                            kSeeds / std::size(kLayouts)) == 0);
    }
  }
}

TEST_CASE("each wait that a step on a GPU leaves out shows") {
  constexpr size_t kKind = 2;  // not a global norm, whose op waits for all events
  for (size_t model = 0; model < Models().size(); ++model) {
    const ModelGraph graph = GraphOf(Models()[model]);
    for (const auto [towers, devices] : kLayouts) {
      // What a second device adds is the same for every model.
      if (devices > 1 && model % 4 != 0) continue;
      CAPTURE(model, towers, devices);
      const FakeGpus gpus(devices);
      const auto group = *MakeGroup(graph, gpus.towers(), cuda::Ops(), OptionsOf(towers, kKind));
      const std::vector<Gradients> wanted = TrainVariants(group.get(), graph, towers);
      int64_t waits = 0;
      CHECK(NeedlessWaits({group.get(), &graph, towers, FakeDriver::Current().work()}, wanted,
                          &waits) == std::vector<int64_t>());
      CHECK(waits > 0);
    }
  }
}

// Of work that fails, and of a GPU that works but is short of something.
constexpr cuda::CUresult kResults[] = {test::kErrorLaunchFailed, cuda::kErrorOutOfMemory,
                                       cuda::kErrorDeviceUnavailable};

TEST_CASE("a call of the driver that fails in a step ends it with an error that names the call") {
  const ModelGraph graph = GraphOf(kDense);
  const int64_t objects = ObjectsAtFirst();
  const cuda::CUresult result = GENERATE(from_range(std::begin(kResults), std::end(kResults)));
  int64_t calls = 1;
  for (int64_t n = 0; n < calls; ++n) {
    CAPTURE(result, n);
    auto device = test::MakeFakeGpu(n);
    FakeDriver& fake = FakeDriver::Current();
    auto group = *MakeGroup(graph, device.get(), cuda::Ops());
    if (n == 0) {
      const int64_t before = fake.calls();
      REQUIRE(Train(group.get(), graph, 1, 0).ok());
      calls = fake.calls() - before;
      REQUIRE(calls > 50);
    }
    fake.FailCall(n, result);
    const absl::Status failed = Train(group.get(), graph, 1, 0).status();
    REQUIRE(failed.code() == (result == cuda::kErrorOutOfMemory
                                  ? absl::StatusCode::kResourceExhausted
                                  : absl::StatusCode::kInternal));
    CHECK(ExitCodeFor(failed) == ExitCode::kDeviceFailed);
    CHECK_THAT(std::string(failed.message()), Catch::Contains("cuda:0: " + fake.failed_call()));
    // It stays.
    CHECK(Train(group.get(), graph, 1, 1).status() == failed);
    group.reset();
    CHECK(device->status() == failed);
    CHECK(fake.live() == 1);  // the context
    CHECK(LiveObjects() == objects);
  }
}

TEST_CASE(
    "a call that fails on one of two GPUs ends the step, and no wrong gradient is announced") {
  const ModelGraph graph = GraphOf(kDense);
  constexpr int kTowers = 2;
  std::vector<Tensor> wanted;
  int64_t calls = 1;
  for (int64_t n = 0; n < calls; ++n) {
    INFO("call " << n);
    const FakeGpus gpus(kTowers);
    FakeDriver& fake = FakeDriver::Current();
    const auto group = *MakeGroup(graph, gpus.towers(), cuda::Ops(), OptionsOf(kTowers, 0));
    if (n == 0) {
      const int64_t before = fake.calls();
      wanted = *Train(group.get(), graph, kTowers, 0);
      calls = fake.calls() - before;
      REQUIRE(calls > 100);
    }
    fake.FailCall(n, test::kErrorLaunchFailed);
    int wrong = 0;
    const absl::Status failed =
        Train(group.get(), graph, kTowers, 0, [&](int variable, const Tensor& gradient) {
          wrong += !SameBits(gradient, wanted[static_cast<size_t>(variable)]);
        }).status();
    CHECK(wrong == 0);
    REQUIRE(absl::IsInternal(failed));
    CHECK_THAT(std::string(failed.message()), Catch::Contains(": " + fake.failed_call()));
    CHECK(Train(group.get(), graph, kTowers, 1).status() == failed);
  }
}

TEST_CASE("a call of the driver that fails while towers are made leaves nothing behind") {
  const ModelGraph graph = GraphOf(kDense);
  const int64_t objects = ObjectsAtFirst();
  const cuda::CUresult result = GENERATE(from_range(std::begin(kResults), std::end(kResults)));
  int64_t calls = 1;
  for (int64_t n = 0; n < calls; ++n) {
    CAPTURE(result, n);
    const auto device = test::MakeFakeGpu(n);
    FakeDriver& fake = FakeDriver::Current();
    if (n == 0) {
      const int64_t before = fake.calls();
      auto group = *MakeGroup(graph, device.get(), cuda::Ops());
      calls = fake.calls() - before;
      REQUIRE(calls > 50);
    }
    fake.FailCall(n, result);
    const absl::Status failed = MakeGroup(graph, device.get(), cuda::Ops()).status();
    // A device that cannot be made current is found by the first work on it.
    CHECK((!failed.ok() || !device->status().ok()));
    CHECK(fake.live() == 1);
    CHECK(LiveObjects() == objects);
  }
}

TEST_CASE("a call of a library that fails in a step ends it with an error that names the layer") {
  const auto device = test::MakeFakeGpu(1);
  test::FakeCudnn cudnn({test::FakeEngine{}});
  const ModelGraph convolutions = GraphOf(kLeNet);
  const auto group = *MakeGroup(convolutions, device.get(), cuda::Ops());
  cudnn.FailRuns();
  const absl::Status forward = Train(group.get(), convolutions, 1, 0).status();
  CHECK(ExitCodeFor(forward) == ExitCode::kDeviceFailed);
  CHECK_THAT(std::string(forward.message()),
             Catch::StartsWith("layer \"conv1\": cudnnBackendExecute of a convolution: "));
}

TEST_CASE("a product that fails in a backward pass ends the step with the layer's name") {
  const auto device = test::MakeFakeGpu(1);
  static int products = 0;
  products = 0;
  cuda::CublasLtFunctions functions = *test::FakeCublasLt().operator->().operator->();
  functions.Matmul = [](auto... arguments) {
    constexpr int kForward = 4;
    if (products++ == kForward) return test::kCublasInvalidValue;
    return (*test::FakeCublasLt().operator->().operator->()).Matmul(arguments...);
  };
  const cuda::CublasLtLibrary failing(functions);
  cuda::SetCublasLtForTesting(&failing);
  const ModelGraph products_only = GraphOf(kDense);
  auto group = MakeGroup(products_only, device.get(), cuda::Ops());
  cuda::SetCublasLtForTesting(&test::FakeCublasLt());
  const absl::Status backward = Train(group->get(), products_only, 1, 0).status();
  CHECK(ExitCodeFor(backward) == ExitCode::kDeviceFailed);
  CHECK_THAT(std::string(backward.message()),
             Catch::StartsWith("layer \"scores\": cublasLtMatmul: "));
}

TEST_CASE("a model that a GPU has no memory for is refused with both sizes") {
  const auto device = test::MakeFakeGpu(1);
  const auto refusal = [&](size_t memory, const OpTable& ops) {
    FakeDriver::Current().SetMemory(memory);
    const absl::Status refused = MakeGroup(GraphOf(kDense), device.get(), ops).status();
    CHECK(absl::IsResourceExhausted(refused));
    CHECK_THAT(std::string(refused.message()), Catch::Contains("bytes are free. Remedy"));
    return std::string(refused.message());
  };
  CHECK_THAT(refusal(1000, cuda::Ops()),
             Catch::StartsWith("inputs, values and gradients, the largest of variable "
                               "\"hidden/kernel\" with 280 bytes: cuda:0: no memory for "));
  const auto refusal_of_activations = [&](Precision precision) {
    const OpTable& ops = cuda::Ops(precision);
    size_t enough = 1000;  // for what is allocated before the activations
    while (refusal(enough, ops).starts_with("inputs")) enough += 64;
    return refusal(enough, ops);
  };
  CHECK_THAT(refusal_of_activations(Precision::kFloat32),
             Catch::StartsWith("activations of 4 examples, the largest of layer \"both\" with 160 "
                               "bytes: cuda:0: no memory for "));
  CHECK_THAT(refusal_of_activations(Precision::kBfloat16),
             Catch::StartsWith("activations of 4 examples, the largest of layer \"both\" with 80 "
                               "bytes: cuda:0: no memory for "));
}

TEST_CASE("memory that a GPU lacks for a loss is told of with the layer") {
  const auto device = test::MakeFakeGpu(1);
  const ModelGraph graph = GraphOf(kDense);
  std::set<std::string> refused;  // what there was no memory for
  constexpr size_t kStep = 16;    // less than any allocation of a loss
  for (size_t memory = 1000;; memory += kStep) {
    FakeDriver::Current().SetMemory(memory);
    const absl::Status made = MakeGroup(graph, device.get(), cuda::Ops()).status();
    if (made.ok()) break;
    REQUIRE(absl::IsResourceExhausted(made));
    refused.insert(std::string(made.message()).substr(0, made.message().find("cuda:0: ")));
  }
  CHECK(refused.contains("layer \"loss\": "));
  CHECK_FALSE(refused.contains(""));
}

TEST_CASE("a kernel that an op, a loss or a sum does not find is told of with the layer") {
  for (const char* const model : Models()) {
    const ModelGraph graph = GraphOf(model);
    int64_t calls = 1;
    int64_t kernels = 0;
    for (int64_t n = 0; n < calls; ++n) {
      CAPTURE(graph.name(), n);
      const auto device = test::MakeFakeGpu(1);
      FakeDriver& fake = FakeDriver::Current();
      const int64_t before = fake.calls();
      if (n > 0) fake.FailCall(n, test::kErrorNotFound);
      const auto made = Tower::Create(graph, device.get(), cuda::Ops(), {.batches = {4}});
      if (n == 0) calls = fake.calls() - before;
      if (fake.failed_call() != "cuModuleGetFunction") continue;
      ++kernels;
      CHECK_THAT(std::string(made.status().message()), Catch::StartsWith("layer \""));
    }
    CHECK(kernels > 5);
  }
}

TEST_CASE("a tower whose tables are whole has memory for lists of its batch's rows alone") {
  constexpr uint64_t kTableBytes = 100'000 * sizeof(float);
  const auto device = test::MakeFakeGpu(1);
  const ModelGraph graph = GraphOf(R"pb(
    name: "rows"
    input_shape: [ 1 ]
    layers {
      name: "table"
      embedding { rows: 100000 dim: 1 combiner: SUM }
    }
    layers {
      name: "scores"
      dense { units: 2 }
    }
    layers {
      name: "loss"
      softmax_cross_entropy {}
    }
  )pb");
  const auto tower = *Tower::Create(graph, device.get(), cuda::Ops(),
                                    {.batches = {4}, .training = false, .whole_tables = true});
  CHECK(device->use().memory > kTableBytes);
  CHECK(device->use().memory < kTableBytes + kTableBytes / 2);
}

TEST_CASE("a model with a layer that a GPU cannot compute is refused with the layer's name") {
  const auto device = test::MakeFakeGpu(1);
  const ModelGraph graph = GraphOf(R"pb(
    name: "trial"
    input_shape: [ 6 ]
    layers {
      name: "release"
      synthetic { elements: 3 }
    }
    layers {
      name: "scores"
      dense { units: 3 }
    }
    layers {
      name: "loss"
      softmax_cross_entropy {}
    }
  )pb");
  const absl::Status refused = MakeGroup(graph, device.get(), cuda::Ops()).status();
  CHECK(absl::IsUnimplemented(refused));
  CHECK(ExitCodeFor(refused) == ExitCode::kBadConfiguration);
  CHECK_THAT(std::string(refused.message()),
             Catch::Contains("this device has no op \"synthetic\""));
  CHECK_THAT(std::string(refused.message()), Catch::Contains("release"));
}

}  // namespace
}  // namespace lockstep::worker
