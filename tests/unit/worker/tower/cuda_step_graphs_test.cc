// Steps that a GPU launches as graphs, over a driver and libraries that the host imitates: what
// they do where a call fails, is refused or is left out.
#include <catch2/catch.hpp>
#include <cstdint>
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "tests/support/cuda/fake_cublas_lt.h"
#include "tests/support/cuda/fake_cudnn.h"
#include "tests/support/cuda/fake_gpu.h"
#include "tests/support/test_device.h"
#include "tests/unit/worker/tower/group_training.h"
#include "worker/ops/cuda/ops.h"
#include "worker/tower/step_graphs.h"

namespace lockstep::worker {
namespace {

using test::FakeCudnn;
using test::FakeDriver;

// Steps of two batch sizes in turn: the first two are enqueued, the next two are captured and
// launched, and then all are launched.
constexpr int kEnqueued = 2;
constexpr int kCaptured = 4;
constexpr int kSteps = 6;

// Of cuBLASLt and cuDNN.
int64_t LiveObjects() {
  return test::LiveCublasLtObjects() + static_cast<int64_t>(FakeCudnn::Current().live());
}

std::unique_ptr<TowerGroup> MakeGroupOn(Device* device, const ModelGraph& graph, int towers = 1) {
  return *MakeGroup(graph, device, cuda::Ops(), {.towers = towers}, {kSmallerBatch});
}

// What the steps of a group give, and how many calls of the driver they make.
struct Steps {
  std::vector<std::vector<Tensor>> gradients;
  std::vector<int64_t> calls;

  Steps(TowerGroup* group, const ModelGraph& graph) {
    for (int step = 0; step < kSteps; ++step) {
      const int64_t before = FakeDriver::Current().calls();
      gradients.push_back(*TrainStep(group, graph, step));
      calls.push_back(FakeDriver::Current().calls() - before);
    }
  }
};

TEST_CASE("a step that is launched as a graph makes few calls of the driver") {
  const auto device = test::MakeFakeGpu(1);
  const ModelGraph graph = GraphOf(kRandom);
  const auto group = MakeGroupOn(device.get(), graph);
  const Steps steps(group.get(), graph);
  CHECK(device->use().training_steps == kSteps);
  CHECK(device->use().graph_launches == kSteps - kEnqueued);
  CHECK(device->use().graph_error.empty());
  CHECK(steps.calls[4] == steps.calls[5]);
  CHECK(steps.calls[4] < steps.calls[0]);
  CHECK(steps.calls[4] < steps.calls[2]);
}

TEST_CASE("a call that fails in a step that is captured or launched ends it with the call's name") {
  const ModelGraph graph = GraphOf(kDense);
  const int64_t objects = LiveObjects();
  for (const int at : {kEnqueued, kCaptured}) {
    int64_t calls = 1;
    for (int64_t n = 0; n < calls; ++n) {
      CAPTURE(at, n);
      const auto device = test::MakeFakeGpu(static_cast<uint64_t>(n));
      FakeDriver& fake = FakeDriver::Current();
      auto group = MakeGroupOn(device.get(), graph);
      if (n == 0) {
        calls = Steps(group.get(), graph).calls[static_cast<size_t>(at)];
        REQUIRE(calls > 30);
        continue;
      }
      for (int step = 0; step < at; ++step) REQUIRE(TrainStep(group.get(), graph, step).ok());
      fake.FailCall(n, test::kErrorLaunchFailed);
      const absl::Status failed = TrainStep(group.get(), graph, at).status();
      REQUIRE(absl::IsInternal(failed));
      CHECK_THAT(std::string(failed.message()), Catch::Contains("cuda:0: " + fake.failed_call()));
      CHECK(TrainStep(group.get(), graph, at + 1).status() == failed);  // it stays
      group.reset();
      CHECK(fake.live() == 1);  // the context
      CHECK(LiveObjects() == objects);
    }
  }
}

TEST_CASE("a launch that fails on one of two GPUs announces no wrong gradient") {
  const ModelGraph graph = GraphOf(kRandom);
  constexpr int kTowers = 2;
  std::vector<Tensor> wanted;
  int64_t calls = 1;
  for (int64_t n = 0; n < calls; ++n) {
    CAPTURE(n);
    const std::vector<std::shared_ptr<Device>> gpus = {test::MakeFakeGpu(1, 0),
                                                       test::MakeFakeGpu(1, 1)};
    FakeDriver& fake = FakeDriver::Current();
    const auto group = *MakeGroup(graph, test::TowersOn(gpus), cuda::Ops(), OptionsOf(kTowers, 0));
    for (int step = 0; step < 2; ++step) REQUIRE(Train(group.get(), graph, kTowers, 0).ok());
    if (n == 0) {
      const int64_t before = fake.calls();
      wanted = *Train(group.get(), graph, kTowers, 0);
      calls = fake.calls() - before;
      REQUIRE(calls > 50);
      for (const auto& gpu : gpus) CHECK(gpu->use().graph_launches == 2);
      continue;
    }
    fake.FailCall(n, test::kErrorLaunchFailed);
    int wrong = 0;
    const absl::Status failed =
        Train(group.get(), graph, kTowers, 0, [&](int variable, const Tensor& gradient) {
          wrong += !SameBits(gradient, wanted[static_cast<size_t>(variable)]);
        }).status();
    CHECK(wrong == 0);
    CHECK_THAT(std::string(failed.message()), Catch::Contains(": " + fake.failed_call()));
  }
}

// Leaves out each copy of a step that is launched as a graph, in turn. `lists`: of rows of tables.
void CheckOmittedCopies(const ModelGraph& graph, int towers, Tables tables, int64_t lists) {
  const auto device = test::MakeFakeGpu(1);
  FakeDriver& fake = FakeDriver::Current();
  const auto group = MakeGroupOn(device.get(), graph, towers);
  for (int step = 0; step < kCaptured; ++step) {
    REQUIRE(TrainStep(group.get(), graph, step, tables).ok());
  }
  const int64_t before = fake.copies_to_device();
  REQUIRE(TrainStep(group.get(), graph, kCaptured, tables).ok());
  const int64_t copies = fake.copies_to_device() - before;
  // Features, labels, the random key and the variables, train/loss among them.
  CHECK(copies == towers * (3 + lists + static_cast<int64_t>(graph.variables().size())));
  std::vector<int64_t> without_effect;
  for (int64_t index = 0; index < copies; ++index) {
    CAPTURE(towers, index);
    const int step = kCaptured + 1 + static_cast<int>(index);
    const auto other = MakeGroupOn(device.get(), graph, towers);
    const std::vector<Tensor> wanted = *TrainStep(other.get(), graph, step, tables);
    const uint64_t launches = device->use().graph_launches;
    fake.OmitCopyToDevice(index);
    if (AreSame(*TrainStep(group.get(), graph, step, tables), wanted)) {
      without_effect.push_back(index);
    }
    CHECK(device->use().graph_launches == launches + static_cast<uint64_t>(towers));
  }
  CAPTURE(without_effect);
  // No step reads train/loss, and none without random numbers the key of these.
  CHECK(std::ssize(without_effect) == towers * (tables == Tables::kRows ? 2 : 1));
}

TEST_CASE("each copy to a GPU that a step leaves out shows in one that is launched as a graph") {
  for (const int towers : {1, 2}) {
    CheckOmittedCopies(GraphOf(kRandom), towers, Tables::kWhole, 0);
    CheckOmittedCopies(GraphOf(kWideAndDeep), towers, Tables::kRows, 2);
  }
}

// Has `fail` make a call of the step that would be captured fail as only a capture does. Whether
// all steps were enqueued from then on.
bool IsEnqueuedAfter(
    const std::function<void()>& fail, const ModelGraph& graph, const Steps& wanted,
    const std::function<void()>& note = [] {}) {
  const auto device = test::MakeFakeGpu(1);
  const auto group = MakeGroupOn(device.get(), graph);
  for (int step = 0; step < kEnqueued; ++step) REQUIRE(TrainStep(group.get(), graph, step).ok());
  fail();
  const auto refused = TrainStep(group.get(), graph, kEnqueued);
  if (!refused.ok()) {  // no call of the capture
    CHECK_THAT(std::string(refused.status().message()),
               Catch::Contains(FakeDriver::Current().failed_call()));
    return false;
  }
  CHECK(AreSame(*refused, wanted.gradients[kEnqueued]));
  for (int step = kEnqueued + 1; step < kSteps; ++step) {
    CHECK(
        AreSame(*TrainStep(group.get(), graph, step), wanted.gradients[static_cast<size_t>(step)]));
  }
  CHECK(device->status().ok());
  CHECK(device->use().training_steps == kSteps);
  if (device->use().graph_launches > 0) return false;
  CHECK_FALSE(device->use().graph_error.empty());
  note();
  return true;
}

TEST_CASE("a step that a GPU refuses to capture is enqueued, as are all later ones") {
  const ModelGraph graph = GraphOf(kDense);
  const auto device = test::MakeFakeGpu(1);
  const auto group = MakeGroupOn(device.get(), graph);
  const Steps wanted(group.get(), graph);
  int64_t refused = 0;
  for (int64_t n = 0; n < wanted.calls[kEnqueued]; ++n) {
    CAPTURE(n);
    const auto fail = [n] { FakeDriver::Current().FailCall(n, cuda::kErrorCaptureUnsupported); };
    refused += IsEnqueuedAfter(fail, graph, wanted);
  }
  CHECK(refused > 30);
}

TEST_CASE("a step whose graph finds no memory on the GPU is enqueued, as are all later ones") {
  const ModelGraph graph = GraphOf(kDense);
  const auto device = test::MakeFakeGpu(1);
  const auto group = MakeGroupOn(device.get(), graph);
  const Steps wanted(group.get(), graph);
  std::set<std::string> refused;
  for (int64_t n = 0; n < wanted.calls[kEnqueued]; ++n) {
    CAPTURE(n);
    const auto fail = [n] { FakeDriver::Current().FailCall(n, cuda::kErrorOutOfMemory); };
    const auto note = [&] { refused.insert(FakeDriver::Current().failed_call()); };
    IsEnqueuedAfter(fail, graph, wanted, note);
  }
  CHECK(refused.contains("cuGraphInstantiateWithFlags"));
  CHECK(refused.contains("cuGraphUpload"));
}

TEST_CASE("a capture that is refused leaves the graphs that are there") {
  const auto device = test::MakeFakeGpu(1);
  const auto stream = *device->CreateStream({});
  const auto memory = *device->Allocate(4);
  const auto pinned = *device->AllocatePinned(4);
  StepGraphs graphs;
  int enqueued = 0;
  const auto step = [&](const void* address) {
    const auto enqueue = [&] {
      ++enqueued;
      stream->CopyToDevice(memory.get(), pinned.get(), 4);
      return absl::OkStatus();
    };
    REQUIRE(graphs.Enqueue({&address, 1}, enqueue, stream.get()).ok());
    return enqueued;
  };
  const int first = 0, second = 0;
  CHECK(step(&first) == 1);
  CHECK(step(&first) == 2);  // is captured
  CHECK(step(&first) == 2);
  CHECK(step(&second) == 3);
  FakeDriver::Current().FailCall(1, cuda::kErrorCaptureUnsupported);  // after cuCtxSetCurrent
  CHECK(step(&second) == 4);
  CHECK(step(&second) == 5);
  CHECK(step(&first) == 5);
  CHECK(device->status().ok());
}

TEST_CASE("a step with a convolution that cuDNN refuses to capture is enqueued") {
  const ModelGraph graph = GraphOf(kLeNet);
  const auto device = test::MakeFakeGpu(1);
  const auto group = MakeGroupOn(device.get(), graph);
  const Steps wanted(group.get(), graph);
  const int64_t before = FakeCudnn::Current().calls();
  REQUIRE(TrainStep(group.get(), graph, kSteps).ok());
  CHECK(FakeCudnn::Current().calls() == before);  // it is launched
  constexpr int64_t kCalls = 5;                   // the fewest of two convolutions
  for (int64_t n = 0; n < kCalls; ++n) {
    CAPTURE(n);
    CHECK(IsEnqueuedAfter([n] { FakeCudnn::Current().FailCall(n); }, graph, wanted));
  }
}

}  // namespace
}  // namespace lockstep::worker
