// Sums over devices whose work runs in any order that streams and events allow.
#include "worker/tower/hierarchical_copy.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/cuda/fake_gpu.h"
#include "tests/support/deferred_device.h"
#include "worker/ops/cpu/ops.h"
#include "worker/ops/cuda/ops.h"

namespace lockstep::worker {
namespace {

constexpr int64_t kElements = 6;
constexpr size_t kBytes = kElements * sizeof(float);
constexpr size_t kTensors = 2;  // that are summed one after the other, by the same copies

using Values = std::vector<float>;

// Another order of additions has other bits, and a round leaves behind what the next one has not.
Values ValuesOf(size_t round, size_t tensor, size_t device) {
  Values values;
  for (int64_t i = 0; i < kElements; ++i) {
    values.push_back(std::sin(1.0f + static_cast<float>(11 * round + 7 * tensor + 3 * device) +
                              0.37f * static_cast<float>(i)));
  }
  return values;
}

// (x_0 + x_1 + ...) + (x_h + ...), h = devices / 2.
Values Expected(size_t round, size_t tensor, size_t devices) {
  const auto sum = [&](size_t begin, size_t end) {
    Values total = ValuesOf(round, tensor, begin);
    for (size_t device = begin + 1; device < end; ++device) {
      const Values term = ValuesOf(round, tensor, device);
      for (size_t i = 0; i < total.size(); ++i) total[i] += term[i];
    }
    return total;
  };
  Values first = sum(0, devices / 2);
  const Values second = sum(devices / 2, devices);
  for (size_t i = 0; i < first.size(); ++i) first[i] += second[i];
  return first;
}

class Devices {
 public:
  explicit Devices(size_t count) : first_(/*threads=*/1, /*seed=*/1), all_({&first_}) {
    while (all_.size() < count) {
      peers_.push_back(first_.MakePeer());
      all_.push_back(peers_.back().get());
    }
    copy_ = *HierarchicalCopy::Create(TowerDevices(all_), cpu::Ops());
    REQUIRE(copy_->Reserve(kBytes).ok());
    for (Device* const device : all_) {
      streams_.push_back(*device->CreateStream({}));
      passed_.push_back(*device->CreateEvent());
      for (size_t tensor = 0; tensor < kTensors; ++tensor) {
        memory_.push_back(*device->Allocate(kBytes));
      }
    }
  }
  test::DeferredDevice* work() { return &first_; }

  // What the first device has in the end, by tensor.
  std::vector<Values> Sum(size_t round) {
    std::vector<Stream*> streams;
    for (const auto& stream : streams_) streams.push_back(stream.get());
    std::vector<Values> held;  // until the copies have run
    held.reserve(all_.size() * kTensors);
    for (size_t tensor = 0; tensor < kTensors; ++tensor) {
      std::vector<MutableTensorView> by_device;
      for (size_t device = 0; device < all_.size(); ++device) {
        void* const at = memory_[device * kTensors + tensor].get();
        held.push_back(ValuesOf(round, tensor, device));
        streams[device]->CopyToDevice(at, held.back().data(), kBytes);
        by_device.push_back({DType::kFloat32, Shape({kElements}), at});
      }
      REQUIRE(copy_->ReduceToFirst(by_device, streams).ok());
    }
    std::vector<Values> sums(kTensors, Values(kElements));
    for (size_t tensor = 0; tensor < kTensors; ++tensor) {
      streams[0]->CopyToHost(sums[tensor].data(), memory_[tensor].get(), kBytes);
    }
    std::vector<Event*> passed;
    for (size_t device = 0; device < all_.size(); ++device) {
      passed.push_back(passed_[device].get());
      streams[device]->Record(passed.back());
    }
    REQUIRE(copy_->Await(passed).ok());
    return sums;
  }

 private:
  test::DeferredDevice first_;
  std::vector<std::unique_ptr<Device>> peers_;
  std::vector<Device*> all_;
  std::vector<DeviceBuffer> memory_;  // by device, then by tensor
  std::vector<std::unique_ptr<Event>> passed_;
  std::unique_ptr<HierarchicalCopy> copy_;
  std::vector<std::unique_ptr<Stream>> streams_;
};

bool SumsRight(Devices* devices, size_t count, uint64_t round) {
  const std::vector<Values> sums = devices->Sum(round);
  for (size_t tensor = 0; tensor < kTensors; ++tensor) {
    if (sums[tensor] != Expected(round, tensor, count)) return false;
  }
  return true;
}

TEST_CASE("both halves are added in the order of the devices, then the two sums") {
  for (const size_t count : {2, 3, 4, 5, 8}) {
    Devices devices(count);
    for (uint64_t seed = 1; seed <= 200; ++seed) {
      devices.work()->Reseed(seed);
      if (!SumsRight(&devices, count, seed)) FAIL("devices " << count << ", seed " << seed);
    }
  }
}

TEST_CASE("each wait that hierarchical copy leaves out shows") {
  for (const size_t count : {2, 5, 8}) {
    Devices devices(count);
    const int64_t before = devices.work()->waits();
    CHECK(SumsRight(&devices, count, /*round=*/0));
    const int64_t waits = devices.work()->waits() - before;
    CHECK(waits == static_cast<int64_t>(kTensors * (count - 1)));
    for (int64_t index = 0; index < waits; ++index) {
      CAPTURE(count, index);
      bool is_detected = false;
      for (uint64_t seed = 1; seed <= 500 && !is_detected; ++seed) {
        devices.work()->Reseed(seed);
        devices.work()->OmitWait(index);
        is_detected = !SumsRight(&devices, count, seed);
      }
      CHECK(is_detected);
    }
  }
}

TEST_CASE("GPUs that have no memory for the copies are refused with both sizes") {
  const auto first = test::MakeFakeGpu(/*seed=*/1, 0);
  const auto second = test::MakeFakeGpu(/*seed=*/1, 1);
  const auto copy = *HierarchicalCopy::Create(
      TowerDevices(std::vector<Device*>{first.get(), second.get()}), cuda::Ops());
  test::FakeDriver::Current().SetMemory(100);
  const absl::Status refused = copy->Reserve(101);
  CHECK(absl::IsResourceExhausted(refused));
  CHECK_THAT(
      std::string(refused.message()),
      Catch::StartsWith("copies of other GPUs' gradients: cuda:0: no memory for 101 bytes") &&
          Catch::EndsWith("or strategy.parameter_server.cross_tower_ops { all_reduce {} }, "
                          "which needs none where NCCL is installed"));
  CHECK(copy->Reserve(100).ok());
}

}  // namespace
}  // namespace lockstep::worker
