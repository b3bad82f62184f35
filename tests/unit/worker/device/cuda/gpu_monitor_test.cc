// GPUs whose NVML tests imitate: what it tells of them, and what it refuses.
#include "worker/device/cuda/gpu_monitor.h"

#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <tuple>

#include "absl/synchronization/notification.h"
#include "tests/support/cuda/fake_nvml.h"

namespace lockstep::worker::cuda {
namespace {

using test::FakeNvml;

// A GPU without a driver: what its monitor tells it.
struct WatchedGpu {
  // Without NVML where it is null.
  explicit WatchedGpu(const NvmlLibrary* nvml, absl::Duration grace = absl::Hours(1),
                      const std::string& id = FakeNvml::kPciBusId)
      : monitor(nvml, id,
                {.name = "cuda:0",
                 .on_failure =
                     [this](const std::string& failure) {
                       what = failure;
                       has_failed = true;
                       told.Notify();
                     },
                 .has_failed = [this] { return has_failed.load(); },
                 .on_stuck = [this] { stuck.Notify(); },
                 .grace = grace}) {}

  std::string what;
  absl::Notification told;
  std::atomic<bool> has_failed = false;
  absl::Notification stuck;
  GpuMonitor monitor;
};

TEST_CASE("a GPU's utilization is what NVML says, where it says something") {
  for (const std::string refused :
       {"", "nvmlDeviceGetSupportedEventTypes", "nvmlEventSetCreate", "nvmlDeviceRegisterEvents"}) {
    INFO(refused);
    FakeNvml nvml(refused);
    {
      const WatchedGpu gpu(nvml.library());
      while (!gpu.monitor.utilization().has_value()) std::this_thread::yield();
      CHECK(gpu.monitor.utilization() == FakeNvml::kUtilization);
      CHECK(nvml.sets() == (refused.empty() ? 1 : 0));
    }
    CHECK(nvml.sets() == 0);
  }
}

TEST_CASE("where NVML knows nothing of a GPU, nothing is known of it") {
  FakeNvml silent("nvmlDeviceGetUtilizationRates");
  const WatchedGpu gpu(silent.library());
  silent.Add(kNvmlEventXidCriticalError, 13);
  silent.AwaitHandled();
  CHECK_FALSE(gpu.monitor.utilization().has_value());
  const WatchedGpu another(silent.library(), absl::Hours(1), "0000:00:00.0");
  CHECK_FALSE(another.monitor.utilization().has_value());
  const WatchedGpu alone(nullptr);
  CHECK_FALSE(alone.monitor.utilization().has_value());
}

TEST_CASE("errors of the hardware are told with their names") {
  for (const auto& [type, data, what] :
       {std::tuple(kNvmlEventXidCriticalError, 79ull, "Xid 79"),
        {kNvmlEventDoubleBitEccError, 0ull, "an ECC error of two bits"}}) {
    FakeNvml nvml;
    WatchedGpu gpu(nvml.library());
    nvml.Add(type, data);
    gpu.told.WaitForNotification();
    CHECK(gpu.what == what);
  }
  FakeNvml nvml;
  WatchedGpu gpu(nvml.library());
  nvml.AddResult(kNvmlGpuIsLost);
  gpu.told.WaitForNotification();
  CHECK(gpu.what == "the GPU is lost");
}

TEST_CASE("what programs do to a GPU, and what it has mended, is not its failure") {
  FakeNvml nvml;
  WatchedGpu gpu(nvml.library());
  for (const unsigned long long xid : {13, 31, 43, 45, 63, 68, 92, 94, 109}) {
    nvml.Add(kNvmlEventXidCriticalError, xid);
  }
  nvml.Add(/*type=*/1, 79);  // of another kind
  nvml.AwaitHandled();
  CHECK_FALSE(gpu.told.HasBeenNotified());
}

TEST_CASE("a GPU without ECC is asked for Xids alone, and one without either for nothing") {
  {
    FakeNvml nvml("", kNvmlEventXidCriticalError | 1);
    const WatchedGpu gpu(nvml.library());
    CHECK(nvml.registered() == kNvmlEventXidCriticalError);
  }
  FakeNvml nvml("", /*supported=*/1);
  const WatchedGpu gpu(nvml.library());
  CHECK(nvml.sets() == 0);
}

TEST_CASE("NVML that tells no more leaves the GPU as it is") {
  FakeNvml nvml;
  WatchedGpu gpu(nvml.library());
  nvml.AddResult(/*result=*/999);
  while (nvml.sets() > 0) std::this_thread::yield();
  CHECK_FALSE(gpu.told.HasBeenNotified());
}

TEST_CASE("a process that does not end after its GPU has failed is told so, NVML or not") {
  FakeNvml nvml;
  WatchedGpu found_by_nvml(nvml.library(), absl::Milliseconds(1));
  nvml.Add(kNvmlEventXidCriticalError, 48);
  found_by_nvml.stuck.WaitForNotification();
  WatchedGpu found_by_driver(nullptr, absl::Milliseconds(1));
  found_by_driver.has_failed = true;
  found_by_driver.stuck.WaitForNotification();
  CHECK_FALSE(found_by_driver.told.HasBeenNotified());
}

TEST_CASE("an NVML that refuses to start, or is not there, is an error that says so") {
  const FakeNvml nvml;
  CHECK(nvml.library()->ToStatus(kNvmlTimeout, "nvmlInit").message() == "nvmlInit: what NVML says");
  CHECK_FALSE(NvmlLibrary::Open("libnone-such.so").ok());
}

}  // namespace
}  // namespace lockstep::worker::cuda
