// GPUs whose NVML tests imitate: what it tells of them, and what it refuses.
#include "worker/device/cuda/gpu_monitor.h"

#include <catch2/catch.hpp>
#include <deque>
#include <string>
#include <tuple>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "absl/synchronization/notification.h"

namespace lockstep::worker::cuda {
namespace {

constexpr NvmlResult kNotSupported = 3;

// Of one GPU. NVML's functions have no object.
struct FakeNvml;
FakeNvml* fake = nullptr;
struct FakeNvml {
  FakeNvml() { fake = this; }

  absl::Mutex mutex;
  unsigned long long supported = kNvmlEventDoubleBitEccError | kNvmlEventXidCriticalError;
  unsigned long long registered = 0;
  std::deque<std::pair<NvmlResult, NvmlEventData>> events;
  std::string failing_call;
  int sets = 0;             // that exist
  absl::Notification over;  // all events are taken, or a failure was told

  void End() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex) {
    if (!over.HasBeenNotified()) over.Notify();
  }
};

NvmlResult Enter(const char* call) { return fake->failing_call == call ? 999 : kNvmlSuccess; }

NvmlFunctions Functions() {
  NvmlFunctions functions;
  functions.Init = [] { return Enter("nvmlInit"); };
  functions.ErrorString = [](NvmlResult) { return "what NVML says"; };
  functions.DeviceByPciBusId = [](const char* id, NvmlDeviceHandle* device) {
    if (std::string(id) != "0000:65:00.0") return kNotSupported;
    *device = reinterpret_cast<NvmlDeviceHandle>(fake);
    return Enter("nvmlDeviceGetHandleByPciBusId");
  };
  functions.UtilizationRates = [](NvmlDeviceHandle, NvmlUtilization* rates) {
    rates->gpu = 87;
    return Enter("nvmlDeviceGetUtilizationRates");
  };
  functions.SupportedEventTypes = [](NvmlDeviceHandle, unsigned long long* types) {
    *types = fake->supported;
    return Enter("nvmlDeviceGetSupportedEventTypes");
  };
  functions.EventSetCreate = [](NvmlEventSet* set) {
    const NvmlResult result = Enter("nvmlEventSetCreate");
    if (result == kNvmlSuccess) *set = reinterpret_cast<NvmlEventSet>(&++fake->sets);
    return result;
  };
  functions.RegisterEvents = [](NvmlDeviceHandle, unsigned long long types, NvmlEventSet) {
    if ((types & ~fake->supported) != 0) return kNotSupported;
    fake->registered = types;
    return Enter("nvmlDeviceRegisterEvents");
  };
  functions.EventSetWait = [](NvmlEventSet, NvmlEventData* event, unsigned int) {
    absl::MutexLock lock(&fake->mutex);
    if (fake->events.empty()) {
      fake->End();
      return kNvmlTimeout;
    }
    const auto [result, next] = fake->events.front();
    fake->events.pop_front();
    *event = next;
    return result;
  };
  functions.EventSetFree = [](NvmlEventSet) {
    --fake->sets;
    return kNvmlSuccess;
  };
  return functions;
}

class Fixture {
 public:
  FakeNvml* operator->() { return &nvml_; }
  void Add(unsigned long long type, unsigned long long data) {
    nvml_.events.push_back({kNvmlSuccess, {.type = type, .data = data}});
  }
  absl::StatusOr<std::unique_ptr<GpuMonitor>> Start(GpuMonitorOptions options = {
                                                        .on_failure = [](const std::string&) {},
                                                        .on_stuck = [] {}},
                                                    const std::string& id = "0000:65:00.0") {
    return GpuMonitor::Start(&library_, id, std::move(options));
  }
  // Where all events have been seen, what has failed; empty: nothing.
  std::string Failure() {
    std::string what;
    const auto monitor = *Start({.on_failure =
                                     [&](const std::string& failure) {
                                       absl::MutexLock lock(&nvml_.mutex);
                                       what = failure;
                                       nvml_.End();
                                     },
                                 .on_stuck = [] {}});
    nvml_.over.WaitForNotification();
    absl::MutexLock lock(&nvml_.mutex);
    return what;
  }

 private:
  FakeNvml nvml_;
  const NvmlLibrary library_ = *NvmlLibrary::Create(Functions());
};

TEST_CASE("a GPU's utilization is what NVML says, where it says something") {
  Fixture nvml;
  const auto monitor = *nvml.Start();
  CHECK(monitor->utilization() == 87);
  nvml->failing_call = "nvmlDeviceGetUtilizationRates";
  CHECK_FALSE(monitor->utilization().has_value());
}

TEST_CASE("errors of the hardware are told with their names") {
  for (const auto& [type, data, what] :
       {std::tuple(kNvmlEventXidCriticalError, 79ull, "Xid 79"),
        {kNvmlEventDoubleBitEccError, 0ull, "an ECC error of two bits"}}) {
    Fixture nvml;
    nvml.Add(type, data);
    CHECK(nvml.Failure() == what);
    CHECK(nvml->sets == 0);
  }
  Fixture nvml;
  nvml->events.push_back({kNvmlGpuIsLost, {}});
  CHECK(nvml.Failure() == "the GPU is lost");
}

TEST_CASE("what other programs do to a GPU is not its failure") {
  Fixture nvml;
  for (const unsigned long long xid : {13, 31, 43, 45, 68, 109}) {
    nvml.Add(kNvmlEventXidCriticalError, xid);
  }
  CHECK(nvml.Failure().empty());
}

TEST_CASE("a GPU without ECC is asked for Xids alone") {
  Fixture nvml;
  nvml->supported = kNvmlEventXidCriticalError;
  CHECK(nvml.Start().ok());
  CHECK(nvml->registered == kNvmlEventXidCriticalError);
}

TEST_CASE("a process that does not end after its GPU has failed is told so, once") {
  Fixture nvml;
  nvml.Add(kNvmlEventXidCriticalError, 48);
  absl::Notification stuck;
  const auto monitor = *nvml.Start({.on_failure = [](const std::string&) {},
                                    .on_stuck = [&] { stuck.Notify(); },
                                    .grace = absl::Milliseconds(1)});
  stuck.WaitForNotification();
  CHECK(nvml->sets == 1);
}

TEST_CASE("whichever call NVML refuses is named, and nothing is left behind") {
  for (const std::string call :
       {"nvmlDeviceGetHandleByPciBusId", "nvmlDeviceGetSupportedEventTypes", "nvmlEventSetCreate",
        "nvmlDeviceRegisterEvents"}) {
    Fixture nvml;
    nvml->failing_call = call;
    const absl::Status refused = nvml.Start().status();
    CHECK_THAT(std::string(refused.message()),
               Catch::StartsWith(call) && Catch::EndsWith(": what NVML says"));
    CHECK(nvml->sets == 0);
  }
  Fixture nvml;
  CHECK_THAT(std::string(nvml.Start({}, "0000:00:00.0").status().message()),
             Catch::Contains("0000:00:00.0"));
  nvml->failing_call = "nvmlInit";
  CHECK(NvmlLibrary::Create(Functions()).status().message() == "nvmlInit: what NVML says");
  CHECK_FALSE(NvmlLibrary::Open("libnone-such.so").ok());
}

}  // namespace
}  // namespace lockstep::worker::cuda
