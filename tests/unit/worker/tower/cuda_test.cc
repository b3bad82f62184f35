// Training on a GPU, over a driver and libraries that the host imitates.
#include <catch2/catch.hpp>
#include <memory>
#include <string>
#include <vector>

#include "common/base/exit_code.h"
#include "tests/support/cuda/fake_cublas_lt.h"
#include "tests/support/cuda/fake_cudnn.h"
#include "tests/support/cuda/fake_gpu.h"
#include "tests/unit/worker/tower/models.h"
#include "worker/device/cpu/cpu_device.h"
#include "worker/ops/cpu/ops.h"
#include "worker/ops/cuda/ops.h"
#include "worker/tower/tower_group.h"

namespace lockstep::worker {
namespace {

using cuda::CudaDevice;
using test::FakeDriver;

constexpr uint64_t kSeeds = 150;  // for each model
constexpr int64_t kBatch = 4;
constexpr int kVariants = 2;  // of the data: what a step leaves behind differs from the next one's

// The kinds of op that the models of models.h lack.
constexpr char kDense[] = R"pb(
  name: "dense"
  input_shape: [ 6 ]
  layers {
    name: "left"
    dense { units: 5 }
  }
  layers {
    name: "left_relu"
    relu {}
  }
  layers {
    name: "right"
    inputs: "input"
    dense { units: 5 no_bias: true }
  }
  layers {
    name: "right_tanh"
    tanh {}
  }
  layers {
    name: "sum"
    inputs: [ "left_relu", "right_tanh" ]
    add {}
  }
  layers {
    name: "drop"
    dropout { rate: 0.25 }
  }
  layers {
    name: "both"
    inputs: [ "drop", "right_tanh" ]
    concatenate {}
  }
  layers {
    name: "hidden"
    dense { units: 7 }
  }
  layers {
    name: "gate"
    sigmoid {}
  }
  layers {
    name: "scores"
    dense { units: 3 }
  }
  layers {
    name: "loss"
    softmax_cross_entropy {}
  }
)pb";

const std::vector<const char*>& Models() {
  static const std::vector<const char*> models = {kDense,       kLeNet,     kResidual, kRegression,
                                                  kWideAndDeep, kSequences, kStates};
  return models;
}

// Reductions and clippings of every kind, in turn.
ReducerOptions OptionsOf(int towers, size_t kind) {
  ReducerOptions options{.towers = towers};
  if (kind % 2 == 0) options.batch_norm_updates = JobDef::EVERY_TOWER;
  if (kind % 4 == 1) options.clipping.set_value(0.01f);
  if (kind % 4 == 2) options.clipping.set_norm(0.02f);
  if (kind % 4 == 3) options.clipping.set_global_norm(0.05f);
  return options;
}

absl::StatusOr<std::unique_ptr<TowerGroup>> MakeGroup(const ModelGraph& graph, Device* device,
                                                      const OpTable& ops,
                                                      const ReducerOptions& reducer = {}) {
  return TowerGroup::Create(graph, device, ops, {.batch_per_tower = kBatch, .reducer = reducer});
}

// The gradients, the loss last.
absl::StatusOr<std::vector<Tensor>> Train(TowerGroup* group, const ModelGraph& graph, int towers,
                                          int variant) {
  std::vector<Batch> batches;
  for (int t = 0; t < towers; ++t) {
    batches.push_back(BatchOf(graph, kBatch, (variant * towers + t) * kBatch));
  }
  Operands operands(graph);
  const absl::StatusOr<float> loss = group->Train(
      batches, {operands.variable_views}, operands.gradient_views, 7, [](std::span<const int>) {});
  if (!loss.ok()) return loss.status();
  return std::move(operands.gradients);
}

bool AreSame(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t v = 0; v < a.size(); ++v) {
    if (!SameBits(a[v], b[v])) return false;
  }
  return true;
}

// Of cuBLASLt and cuDNN.
int64_t LiveObjects() {
  return test::LiveCublasLtObjects() + static_cast<int64_t>(test::FakeCudnn::Current().live());
}

// By the largest magnitude of each tensor.
bool AreClose(const std::vector<Tensor>& a, const std::vector<Tensor>& b) {
  for (size_t v = 0; v < a.size(); ++v) {
    float largest = 0;
    for (const float value : b[v].as<float>()) largest = std::max(largest, std::abs(value));
    for (size_t i = 0; i < b[v].as<float>().size(); ++i) {
      if (!(std::abs(a[v].as<float>()[i] - b[v].as<float>()[i]) <= 1e-5f * largest)) return false;
    }
  }
  return true;
}

TEST_CASE("a GPU trains to the CPU's gradients") {
  for (const char* const model : Models()) {
    const ModelGraph graph = GraphOf(model);
    for (const int towers : {1, 2}) {
      for (const size_t kind : {0, 2, 3}) {  // not by value, of which rounding is not a small part
        INFO(model << ", towers " << towers << ", reduction " << kind);
        const ReducerOptions options = OptionsOf(towers, kind);
        CpuDevice cpu(1);
        const auto device = test::MakeFakeGpu(1);
        const auto group = *MakeGroup(graph, device.get(), cuda::Ops(), options);
        const auto on_cpu = *MakeGroup(graph, &cpu, cpu::Ops(), options);
        for (int variant = 0; variant < kVariants; ++variant) {
          CHECK(AreClose(*Train(group.get(), graph, towers, variant),
                         *Train(on_cpu.get(), graph, towers, variant)));
        }
      }
    }
  }
}

TEST_CASE("a GPU trains to the same bits in any order of its work") {
  for (size_t model = 0; model < Models().size(); ++model) {
    const ModelGraph graph = GraphOf(Models()[model]);
    for (const int towers : {1, 2}) {
      const auto device = test::MakeFakeGpu(1);
      const auto group = *MakeGroup(graph, device.get(), cuda::Ops(), OptionsOf(towers, model));
      std::vector<std::vector<Tensor>> wanted;
      for (int variant = 0; variant < kVariants; ++variant) {
        wanted.push_back(*Train(group.get(), graph, towers, variant));
      }
      for (uint64_t seed = 1; seed <= kSeeds / 2; ++seed) {
        FakeDriver::Current().work()->Reseed(seed);
        const int variant = static_cast<int>(seed % kVariants);
        if (!AreSame(*Train(group.get(), graph, towers, variant), wanted[variant])) {
          FAIL("model " << model << ", towers " << towers << ", seed " << seed);
        }
      }
    }
  }
}

TEST_CASE("each wait that a step on a GPU leaves out shows") {
  constexpr uint64_t kMostTries = 250;
  constexpr size_t kKind = 2;  // not a global norm, whose op waits for all events
  for (size_t model = 0; model < Models().size(); ++model) {
    const ModelGraph graph = GraphOf(Models()[model]);
    for (const int towers : {1, 2}) {
      const auto device = test::MakeFakeGpu(1);
      test::DeferredDevice* const work = FakeDriver::Current().work();
      const auto group = *MakeGroup(graph, device.get(), cuda::Ops(), OptionsOf(towers, kKind));
      std::vector<std::vector<Tensor>> wanted;
      for (int variant = 0; variant < kVariants; ++variant) {
        wanted.push_back(*Train(group.get(), graph, towers, variant));
      }
      const int64_t before = work->waits();
      REQUIRE(Train(group.get(), graph, towers, 0).ok());
      const int64_t waits = work->waits() - before;
      CHECK(waits > 0);
      for (int64_t index = 0; index < waits; ++index) {
        CAPTURE(model, towers, index);
        bool is_detected = false;
        for (uint64_t seed = 1; seed <= kMostTries && !is_detected; ++seed) {
          const int variant = static_cast<int>(seed % kVariants);
          work->Reseed(seed);
          work->OmitWait(index);
          is_detected = !AreSame(*Train(group.get(), graph, towers, variant), wanted[variant]);
        }
        CHECK(is_detected);
      }
    }
  }
}

TEST_CASE("a call of the driver that fails in a step ends it with an error that names the call") {
  const ModelGraph graph = GraphOf(kDense);
  const int64_t objects = LiveObjects();
  int64_t calls = 1;
  for (int64_t n = 0; n < calls; ++n) {
    INFO("call " << n);
    auto device = test::MakeFakeGpu(n);
    FakeDriver& fake = FakeDriver::Current();
    auto group = *MakeGroup(graph, device.get(), cuda::Ops());
    if (n == 0) {
      const int64_t before = fake.calls();
      REQUIRE(Train(group.get(), graph, 1, 0).ok());
      calls = fake.calls() - before;
      REQUIRE(calls > 50);
    }
    fake.FailCall(n, test::kErrorLaunchFailed);
    const absl::Status failed = Train(group.get(), graph, 1, 0).status();
    REQUIRE(absl::IsInternal(failed));
    CHECK_THAT(std::string(failed.message()), Catch::Contains("cuda:0: " + fake.failed_call()));
    // It stays.
    CHECK(Train(group.get(), graph, 1, 1).status() == failed);
    group.reset();
    CHECK(device->status() == failed);
    CHECK(fake.live() == 1);  // the context
    CHECK(LiveObjects() == objects);
  }
}

TEST_CASE("a call of the driver that fails while towers are made leaves nothing behind") {
  const ModelGraph graph = GraphOf(kDense);
  const int64_t objects = LiveObjects();
  int64_t calls = 1;
  for (int64_t n = 0; n < calls; ++n) {
    INFO("call " << n);
    const auto device = test::MakeFakeGpu(n);
    FakeDriver& fake = FakeDriver::Current();
    if (n == 0) {
      const int64_t before = fake.calls();
      auto group = *MakeGroup(graph, device.get(), cuda::Ops());
      calls = fake.calls() - before;
      REQUIRE(calls > 50);
    }
    fake.FailCall(n, test::kErrorLaunchFailed);
    const absl::Status failed = MakeGroup(graph, device.get(), cuda::Ops()).status();
    // A device that cannot be made current is found by the first work on it.
    CHECK((!failed.ok() || !device->status().ok()));
    CHECK(fake.live() == 1);
    CHECK(LiveObjects() == objects);
  }
}

TEST_CASE("a model that a GPU has no memory for is refused with both sizes") {
  const auto device = test::MakeFakeGpu(1);
  FakeDriver::Current().SetMemory(1000);
  const absl::Status refused = MakeGroup(GraphOf(kDense), device.get(), cuda::Ops()).status();
  CHECK(absl::IsResourceExhausted(refused));
  CHECK_THAT(std::string(refused.message()), Catch::Contains("bytes are free. Remedy"));
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
