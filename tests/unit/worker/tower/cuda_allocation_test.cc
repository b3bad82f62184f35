// A step on a GPU asks the driver for no memory, over one that the host imitates.
#include <catch2/catch.hpp>
#include <cstdint>
#include <memory>

#include "tests/support/cuda/fake_gpu.h"
#include "tests/unit/worker/tower/group_training.h"
#include "worker/ops/cuda/ops.h"

namespace lockstep::worker {
namespace {

using test::FakeDriver;

// Steps of two batch sizes in turn: each is enqueued, then captured, and then launched.
constexpr int kWarmUp = 4;
constexpr int kSteps = 10;

// The model's steps after the first ones, with other rows of its tables in each.
void CheckSteps(cuda::CudaDevice* device, const char* model, Tables tables, int towers) {
  const ModelGraph graph = GraphOf(model);
  const auto group = *MakeGroup(graph, device, cuda::Ops(), OptionsOf(towers, 2), {kSmallerBatch});
  const FakeDriver& fake = FakeDriver::Current();
  for (int step = 0; step < kWarmUp; ++step) {
    REQUIRE(TrainStep(group.get(), graph, step, tables).ok());
  }
  const int64_t allocations = fake.allocations();
  const int64_t pinned = fake.pinned_allocations();
  CHECK(allocations > 0);
  CHECK(pinned > 0);
  for (int step = kWarmUp; step < kSteps; ++step) {
    REQUIRE(TrainStep(group.get(), graph, step, tables).ok());
  }
  CHECK(fake.allocations() == allocations);
  CHECK(fake.pinned_allocations() == pinned);
}

void CheckModels(cuda::CudaDevice* device) {
  for (const int towers : {1, 2}) {
    CAPTURE(towers);
    CheckSteps(device, kDense, Tables::kWhole, towers);
    CheckSteps(device, kLeNet, Tables::kWhole, towers);
    CheckSteps(device, kSequences, Tables::kWhole, towers);
    CheckSteps(device, kWideAndDeep, Tables::kRows, towers);
  }
}

TEST_CASE("steps that are launched as graphs ask for no memory") {
  const auto device = test::MakeFakeGpu(1);
  CheckModels(device.get());
  CHECK(device->use().graph_launches > 0);
}

TEST_CASE("steps that are enqueued ask for no memory") {
  const auto gpu = test::MakeFakeGpu(1);
  cuda::DriverFunctions functions = FakeDriver::functions();
  functions.StreamBeginCapture = [](cuda::CUstream, int) { return cuda::kErrorNotSupported; };
  const auto driver = *cuda::Driver::Create(functions, 0);
  const auto device = *cuda::CudaDevice::Create(driver.get(), 0);
  CheckModels(device.get());
  CHECK(device->use().graph_launches == 0);
}

}  // namespace
}  // namespace lockstep::worker
