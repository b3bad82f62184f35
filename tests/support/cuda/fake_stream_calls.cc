// Streams, events and kernels.
#include <functional>
#include <memory>
#include <utility>

#include "tests/support/cuda/emulated_kernel.h"
#include "tests/support/cuda/fake_calls.h"

namespace lockstep::test {

using worker::HostStream;
using worker::cuda::CUevent;
using worker::cuda::CUfunction;
using worker::cuda::CUmodule;
using worker::cuda::CUresult;
using worker::cuda::CUstream;
using worker::cuda::DriverFunctions;
using worker::cuda::kErrorCapturedEvent;
using worker::cuda::kErrorCaptureIsolation;
using worker::cuda::kErrorNotReady;
using worker::cuda::kEventRecordExternal;
using worker::cuda::kEventWaitExternal;
using worker::cuda::kSuccess;

void FakeStreamCalls::AddTo(DriverFunctions* functions) {
  functions->StreamCreate = [](CUstream* stream, unsigned int) -> CUresult {
    return Call("cuStreamCreate", [&](FakeDriver& driver) {
      const int device = driver.CurrentDevice();
      std::unique_ptr<worker::Stream> made = *driver.WorkOf(device)->CreateStream({});
      *stream = reinterpret_cast<CUstream>(made.get());
      driver.streams_[*stream] = {std::move(made), device};
      return kSuccess;
    });
  };
  functions->StreamDestroy = [](CUstream stream) -> CUresult {
    return Free("cuStreamDestroy", [&](FakeDriver& driver) {
      const CUresult result = driver.RunAll();  // a driver lets it come to its end, too
      return driver.streams_.erase(stream) == 1 ? result : kErrorInvalidHandle;
    });
  };
  functions->StreamSynchronize = [](CUstream stream) -> CUresult {
    return Call("cuStreamSynchronize", [&](FakeDriver& driver) {
      HostStream* const found = driver.Find(stream);
      if (found == nullptr) return kErrorInvalidHandle;
      const std::unique_ptr<worker::Event> reached = *driver.work_.CreateEvent();
      found->Record(reached.get());
      reached->Wait().IgnoreError();
      return driver.WorkResult();
    });
  };
  functions->StreamWaitEvent = [](CUstream stream, CUevent event, unsigned int flags) -> CUresult {
    return Call("cuStreamWaitEvent", [&](FakeDriver& driver) {
      worker::Event* const point = driver.Find(event);
      if (point == nullptr) return kErrorInvalidHandle;
      const bool is_captured = driver.CaptureOf(stream) != nullptr;
      if (flags == kEventWaitExternal && !is_captured) return kErrorInvalidValue;
      if (flags != kEventWaitExternal && is_captured) {
        driver.InvalidateCaptures();
        return kErrorCaptureIsolation;
      }
      if (driver.captured_events_.contains(event)) return kErrorCaptureIsolation;
      return driver.Submit(stream, [point](HostStream* on) { on->WaitFor(point); });
    });
  };
  functions->EventCreate = [](CUevent* event, unsigned int) -> CUresult {
    return Call("cuEventCreate", [&](FakeDriver& driver) {
      std::unique_ptr<worker::Event> made = *driver.work_.CreateEvent();
      *event = reinterpret_cast<CUevent>(made.get());
      driver.events_[*event] = {std::move(made), driver.CurrentDevice()};
      return kSuccess;
    });
  };
  functions->EventDestroy = [](CUevent event) -> CUresult {
    return Free("cuEventDestroy", [&](FakeDriver& driver) {
      const CUresult result = driver.RunAll();
      return driver.events_.erase(event) == 1 ? result : kErrorInvalidHandle;
    });
  };
  functions->EventRecord = [](CUevent event, CUstream stream) -> CUresult {
    return Call("cuEventRecord", [&](FakeDriver& driver) {
      worker::Event* const point = driver.Find(event);
      if (point == nullptr) return kErrorInvalidHandle;
      if (driver.events_[event].device != driver.CurrentDevice()) return kErrorInvalidHandle;
      driver.captured_events_.erase(event);
      if (driver.CaptureOf(stream) != nullptr) {
        driver.captured_events_.insert(event);
        return kSuccess;
      }
      return driver.Submit(stream, [point](HostStream* on) { on->Record(point); });
    });
  };
  functions->EventRecordWithFlags = [](CUevent event, CUstream stream,
                                       unsigned int flags) -> CUresult {
    return Call("cuEventRecordWithFlags", [&](FakeDriver& driver) {
      worker::Event* const point = driver.Find(event);
      if (point == nullptr) return kErrorInvalidHandle;
      if (driver.events_[event].device != driver.CurrentDevice()) return kErrorInvalidHandle;
      if (flags != kEventRecordExternal || driver.CaptureOf(stream) == nullptr) {
        return kErrorInvalidValue;
      }
      return driver.Submit(stream, [point](HostStream* on) { on->Record(point); });
    });
  };
  functions->EventSynchronize = [](CUevent event) -> CUresult {
    return Call("cuEventSynchronize", [&](FakeDriver& driver) {
      worker::Event* const point = driver.Find(event);
      if (point == nullptr) return kErrorInvalidHandle;
      if (driver.captured_events_.contains(event)) return kErrorCapturedEvent;
      point->Wait().IgnoreError();
      return driver.WorkResult();
    });
  };
  functions->EventQuery = [](CUevent event) -> CUresult {
    return Call("cuEventQuery", [&](FakeDriver& driver) {
      worker::Event* const point = driver.Find(event);
      if (point == nullptr) return kErrorInvalidHandle;
      if (driver.captured_events_.contains(event)) return kErrorCapturedEvent;
      const bool is_reached = driver.work_.TryReach(point);
      return is_reached ? driver.WorkResult() : kErrorNotReady;
    });
  };
  functions->ModuleLoadData = [](CUmodule* module, const void* image) -> CUresult {
    return Call("cuModuleLoadData", [&](FakeDriver& driver) {
      if (image == nullptr) return kErrorInvalidValue;
      ++driver.modules_;
      *module = reinterpret_cast<CUmodule>(&driver);
      return kSuccess;
    });
  };
  functions->ModuleUnload = [](CUmodule) -> CUresult {
    return Free("cuModuleUnload", [](FakeDriver& driver) {
      --driver.modules_;
      return kSuccess;
    });
  };
  functions->ModuleGetFunction = [](CUfunction* function, CUmodule, const char* name) -> CUresult {
    return Call("cuModuleGetFunction", [&](FakeDriver&) {
      const EmulatedKernel* const kernel = FindEmulatedKernel(name);
      if (kernel == nullptr) return kErrorNotFound;
      *function = reinterpret_cast<CUfunction>(const_cast<EmulatedKernel*>(kernel));
      return kSuccess;
    });
  };
  functions->LaunchKernel = [](CUfunction function, unsigned int blocks, unsigned int, unsigned int,
                               unsigned int threads, unsigned int, unsigned int, unsigned int,
                               CUstream stream, void** arguments, void**) -> CUresult {
    return Call("cuLaunchKernel", [&](FakeDriver& driver) {
      if (blocks == 0 || threads == 0 || threads > 1024) return kErrorInvalidValue;
      const bool is_loaded = driver.loaded_kernels_.contains(function);
      if (!is_loaded && driver.CaptureOf(stream) != nullptr) return driver.InvalidateCaptures();
      driver.loaded_kernels_.insert(function);
      const auto* const kernel = reinterpret_cast<const EmulatedKernel*>(function);
      const auto run = [thread = kernel->bind(arguments), has_barriers = kernel->has_barriers,
                        blocks, threads] { RunEmulated(thread, has_barriers, blocks, threads); };
      return driver.Submit(stream, [&driver, run](HostStream* on) { driver.EnqueueOn(on, run); });
    });
  };
}

}  // namespace lockstep::test
