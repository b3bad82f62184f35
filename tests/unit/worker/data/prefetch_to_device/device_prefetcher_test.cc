#include "worker/data/prefetch_to_device/device_prefetcher.h"

#include <catch2/catch.hpp>

#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "tests/support/deferred_device.h"
#include "tests/support/log_lines.h"
#include "tests/unit/worker/data/data_files.h"
#include "tests/unit/worker/local_sync/read_back.h"

namespace lockstep::worker {
namespace {

using lockstep::test::DeferredDevice;
using lockstep::test::ReadBack;
using test::NumberedImages;

const PipelineOptions kOptions{.seed = 42, .batch_per_tower = 3, .towers = 2};

std::unique_ptr<Pipeline> HostPipeline(const NumberedImages& files) {
  return *Pipeline::Open(files.data, NumberedImages::Spec(), kOptions);
}

// Fails in its so-many-th step, or keeps that step until it is told to go on.
class StubbornPipeline final : public Pipeline {
 public:
  explicit StubbornPipeline(std::unique_ptr<Pipeline> pipeline) : pipeline_(std::move(pipeline)) {}

  absl::StatusOr<const std::vector<Batch>*> BatchesFor(GlobalStep step) override {
    if (step.value() == fails_at) return absl::DataLossError("the disk is gone");
    if (step.value() == waits_at) go_on.WaitForNotification();
    return pipeline_->BatchesFor(step);
  }
  bool IsReady(GlobalStep step) const override { return pipeline_->IsReady(step); }
  std::vector<size_t> AlignedBytes() const override { return pipeline_->AlignedBytes(); }
  int64_t num_examples() const override { return pipeline_->num_examples(); }
  int64_t last_step() const override { return pipeline_->last_step(); }

  int64_t fails_at = -1;
  int64_t waits_at = -1;
  absl::Notification go_on;

 private:
  const std::unique_ptr<Pipeline> pipeline_;
};

TEST_CASE("batches on the device are those of the host, in any order of steps") {
  const NumberedImages files(50);
  const auto host = HostPipeline(files);
  for (const int64_t ahead : {1, 3}) {
    DeferredDevice device(1, 7);
    const auto on_device = *DevicePrefetcher::Create(HostPipeline(files), &device, ahead);
    CHECK(on_device->num_examples() == 50);
    CHECK(on_device->last_step() == host->last_step());
    for (const int64_t step : {4, 5, 6, 7, 8, 2, 3, 20, 20}) {
      CAPTURE(ahead, step);
      const std::vector<Batch>& wanted = **host->BatchesFor(GlobalStep(step));
      const auto got = on_device->BatchesFor(GlobalStep(step));
      REQUIRE(got.ok());
      REQUIRE((*got)->size() == 2);
      for (int tower = 0; tower < 2; ++tower) {
        const Batch& batch = (**got)[tower];
        const std::span<const float> pixels = wanted[tower].features.as<float>();
        CHECK(batch.size() == 3);
        CHECK(batch.loaded->features.shape == wanted[tower].features.shape());
        CHECK(std::ranges::equal(ReadBack(&device, batch.loaded->features), pixels));
        CHECK(std::ranges::equal(batch.feature_rows().as<float>(), pixels));
        CHECK(std::ranges::equal(batch.example_numbers(), wanted[tower].example_numbers()));
        CHECK(batch.loaded->labels.dtype == DType::kInt32);
        CHECK(batch.loaded->labels.num_elements() == 3);
      }
    }
  }
}

TEST_CASE("a step that takes for ever ends when the pipeline is cancelled, on a device too") {
  NumberedImages files(50);
  files.data.add_transform()->mutable_repeat();
  files.data.add_transform()->mutable_batch();
  DeferredDevice device(1, 7);
  const auto on_device = *DevicePrefetcher::Create(HostPipeline(files), &device);
  while (!on_device->IsReady(GlobalStep(0))) std::this_thread::yield();
  absl::Status end;
  std::thread consumer([&] { end = on_device->BatchesFor(GlobalStep(int64_t{1} << 50)).status(); });
  while (on_device->IsReady(GlobalStep(0))) std::this_thread::yield();
  on_device->Cancel();
  consumer.join();
  CHECK(absl::IsCancelled(end));
}

TEST_CASE("the next batch comes to the device while a step has its own") {
  const NumberedImages files(50);
  DeferredDevice device(1, 7);
  auto stubborn = std::make_unique<StubbornPipeline>(HostPipeline(files));
  StubbornPipeline& host = *stubborn;
  host.waits_at = 2;
  const auto on_device = *DevicePrefetcher::Create(std::move(stubborn), &device);
  REQUIRE(on_device->BatchesFor(GlobalStep(0)).ok());
  while (!on_device->IsReady(GlobalStep(1))) std::this_thread::yield();
  const std::vector<Batch>& one = **on_device->BatchesFor(GlobalStep(1));
  const std::vector<float> before = ReadBack(&device, one[0].loaded->features);
  CHECK_FALSE(on_device->IsReady(GlobalStep(2)));
  host.go_on.Notify();
  while (!on_device->IsReady(GlobalStep(2))) std::this_thread::yield();
  CHECK_FALSE(on_device->IsReady(GlobalStep(3)));
  CHECK(ReadBack(&device, one[0].loaded->features) == before);
}

TEST_CASE("an error of the data or the device is that of the step and of all after it") {
  const NumberedImages files(50);
  DeferredDevice device(1, 7);
  auto stubborn = std::make_unique<StubbornPipeline>(HostPipeline(files));
  stubborn->fails_at = 2;
  const auto broken = *DevicePrefetcher::Create(std::move(stubborn), &device);
  while (broken->BatchesFor(GlobalStep(0)).ok() && !broken->IsReady(GlobalStep(1))) {
    std::this_thread::yield();
  }
  CHECK(absl::IsDataLoss(broken->BatchesFor(GlobalStep(2)).status()));
  CHECK(absl::IsDataLoss(broken->BatchesFor(GlobalStep(3)).status()));

  DeferredDevice failing(1, 7);
  failing.FailTask(5);
  const auto copies = *DevicePrefetcher::Create(HostPipeline(files), &failing);
  absl::Status failed;
  for (int64_t step = 0; step < 3; ++step) {
    failed.Update(copies->BatchesFor(GlobalStep(step)).status());
  }
  CHECK_FALSE(failed.ok());
  CHECK(absl::IsInvalidArgument(copies->BatchesFor(GlobalStep(-1)).status()));
}

// Of a host with a limit of locked memory.
class UnpinnedDevice final : public DeferredDevice {
 public:
  UnpinnedDevice() : DeferredDevice(1, 7) {}
  absl::StatusOr<DeviceBuffer> AllocatePinned(size_t) override {
    return absl::ResourceExhaustedError("the host cannot pin it");
  }
};

TEST_CASE("batches come to the device, and the log says so, where the host cannot pin memory") {
  const NumberedImages files(50);
  const auto host = HostPipeline(files);
  UnpinnedDevice device;
  const std::vector<std::string> lines = lockstep::test::LogLines([&] {
    const auto on_device = *DevicePrefetcher::Create(HostPipeline(files), &device);
    for (int64_t step = 0; step < 4; ++step) {
      const std::vector<Batch>& wanted = **host->BatchesFor(GlobalStep(step));
      const auto got = on_device->BatchesFor(GlobalStep(step));
      REQUIRE(got.ok());
      CHECK(std::ranges::equal(ReadBack(&device, (**got)[1].loaded->features),
                               wanted[1].features.as<float>()));
    }
  });
  REQUIRE(lines.size() == 1);
  CHECK_THAT(lines[0], Catch::Contains("host memory cannot be pinned, deferred copies at"));
}

}  // namespace
}  // namespace lockstep::worker
