// The driver itself, its device and its context.
#include <cstdio>

#include "tests/support/cuda/fake_calls.h"

namespace lockstep::test {

using worker::cuda::CUcontext;
using worker::cuda::CUdevice;
using worker::cuda::CUresult;
using worker::cuda::DriverFunctions;
using worker::cuda::kSuccess;

namespace {

constexpr int kFakeVersion = 99000;

}  // namespace

void FakeDeviceCalls::AddTo(DriverFunctions* functions) {
  functions->Init = [](unsigned int) -> CUresult {
    return CallAnywhere("cuInit", [](FakeDriver&) { return kSuccess; });
  };
  functions->DriverGetVersion = [](int* version) -> CUresult {
    return CallAnywhere("cuDriverGetVersion", [&](FakeDriver&) {
      *version = kFakeVersion;
      return kSuccess;
    });
  };
  functions->GetErrorName = [](CUresult result, const char** name) -> CUresult {
    switch (result) {
      case kErrorLaunchFailed:
        *name = "CUDA_ERROR_LAUNCH_FAILED";
        break;
      case worker::cuda::kErrorOutOfMemory:
        *name = "CUDA_ERROR_OUT_OF_MEMORY";
        break;
      case worker::cuda::kErrorDeviceUnavailable:
        *name = "CUDA_ERROR_DEVICE_UNAVAILABLE";
        break;
      default:
        *name = "CUDA_ERROR";
    }
    return kSuccess;
  };
  functions->GetErrorString = [](CUresult, const char** text) -> CUresult {
    *text = "of the fake driver";
    return kSuccess;
  };
  functions->DeviceGetCount = [](int* count) -> CUresult {
    return CallAnywhere("cuDeviceGetCount", [&](FakeDriver& driver) {
      *count = driver.device_count_;
      return kSuccess;
    });
  };
  functions->DeviceGet = [](CUdevice* device, int ordinal) -> CUresult {
    return CallAnywhere("cuDeviceGet", [&](FakeDriver& driver) {
      *device = ordinal;
      return ordinal < driver.device_count_ ? kSuccess : kErrorInvalidValue;
    });
  };
  functions->DeviceGetName = [](char* name, int size, CUdevice) -> CUresult {
    return CallAnywhere("cuDeviceGetName", [&](FakeDriver&) {
      std::snprintf(name, static_cast<size_t>(size), "Fake GPU");
      return kSuccess;
    });
  };
  functions->DeviceGetPciBusId = [](char* id, int size, CUdevice device) -> CUresult {
    return CallAnywhere("cuDeviceGetPCIBusId", [&](FakeDriver&) {
      std::snprintf(id, static_cast<size_t>(size), "ffff:%02d:00.0", device);
      return kSuccess;
    });
  };
  functions->DeviceTotalMem = [](size_t* bytes, CUdevice) -> CUresult {
    return CallAnywhere("cuDeviceTotalMem", [&](FakeDriver& driver) {
      *bytes = driver.memory_;
      return kSuccess;
    });
  };
  functions->DeviceGetAttribute = [](int* value, int, CUdevice) -> CUresult {
    return CallAnywhere("cuDeviceGetAttribute", [&](FakeDriver&) {
      *value = 9;
      return kSuccess;
    });
  };
  functions->DevicePrimaryCtxRetain = [](CUcontext* context, CUdevice device) -> CUresult {
    return CallAnywhere("cuDevicePrimaryCtxRetain", [&](FakeDriver& driver) {
      ++driver.contexts_;
      *context = reinterpret_cast<CUcontext>(&driver.context_of_[static_cast<size_t>(device)]);
      return kSuccess;
    });
  };
  functions->DevicePrimaryCtxRelease = [](CUdevice) -> CUresult {
    return Free("cuDevicePrimaryCtxRelease", [](FakeDriver& driver) {
      --driver.contexts_;
      return kSuccess;
    });
  };
  functions->CtxSetCurrent = [](CUcontext context) -> CUresult {
    return CallAnywhere("cuCtxSetCurrent", [&](FakeDriver&) {
      CurrentContext() = context;
      return kSuccess;
    });
  };
  functions->DeviceCanAccessPeer = [](int* can_access, CUdevice device, CUdevice peer) -> CUresult {
    return CallAnywhere("cuDeviceCanAccessPeer", [&](FakeDriver& driver) {
      *can_access = driver.cut_links_.contains({device, peer}) ? 0 : 1;
      return kSuccess;
    });
  };
  functions->CtxEnablePeerAccess = [](CUcontext peer, unsigned int) -> CUresult {
    return Call("cuCtxEnablePeerAccess", [&](FakeDriver& driver) {
      if (peer == CurrentContext()) return kErrorInvalidContext;
      driver.enabled_links_.emplace(driver.CurrentDevice(), driver.DeviceOf(peer));
      return kSuccess;
    });
  };
  functions->CtxSynchronize = []() -> CUresult {
    return Free("cuCtxSynchronize", [](FakeDriver& driver) {
      return driver.InvalidateCapturesOfDevice() ? worker::cuda::kErrorCaptureUnsupported
                                                 : driver.RunAll();
    });
  };
}

}  // namespace lockstep::test
