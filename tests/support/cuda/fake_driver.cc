#include "tests/support/cuda/fake_driver.h"

#include <memory>
#include <utility>

#include "common/base/check.h"

namespace lockstep::test {

using worker::HostStream;
using worker::cuda::CUcontext;
using worker::cuda::CUdevice;
using worker::cuda::CUdeviceptr;
using worker::cuda::CUevent;
using worker::cuda::CUresult;
using worker::cuda::CUstream;
using worker::cuda::DriverFunctions;
using worker::cuda::kErrorOutOfMemory;
using worker::cuda::kSuccess;

namespace {

constexpr int kFakeVersion = 99000;

FakeDriver* current_driver = nullptr;
// Of this thread. There is one device, so one context.
thread_local CUcontext current_context = nullptr;

void* Address(CUdeviceptr memory) { return reinterpret_cast<void*>(memory); }

}  // namespace

// What a driver's functions do, as members of nothing.
struct FakeFunctions {
  static FakeDriver& Driver() { return *current_driver; }

  // For a call of the name `call`: its error, or what `body` returns, under the lock.
  template <typename Body>
  static CUresult Call(const char* call, const Body& body) {
    FakeDriver& driver = Driver();
    absl::MutexLock lock(&driver.mutex_);
    const CUresult result = driver.Enter(call);
    return result == kSuccess ? body(driver) : result;
  }
  // The same for a call that frees: it does so whatever it returns.
  template <typename Body>
  static CUresult Free(const char* call, const Body& body) {
    FakeDriver& driver = Driver();
    absl::MutexLock lock(&driver.mutex_);
    const CUresult result = driver.Enter(call);
    const CUresult freed = body(driver);
    return result == kSuccess ? freed : result;
  }
  // And for one that can be called without a context.
  template <typename Body>
  static CUresult CallAnywhere(const char* call, const Body& body) {
    FakeDriver& driver = Driver();
    absl::MutexLock lock(&driver.mutex_);
    const CUresult result = driver.Enter(call, /*needs_context=*/false);
    return result == kSuccess ? body(driver) : result;
  }

  static CUresult Init(unsigned int) {
    return CallAnywhere("cuInit", [](FakeDriver&) { return kSuccess; });
  }
  static CUresult DriverGetVersion(int* version) {
    return CallAnywhere("cuDriverGetVersion", [&](FakeDriver&) {
      *version = kFakeVersion;
      return kSuccess;
    });
  }
  static CUresult GetErrorName(CUresult result, const char** name) {
    *name = result == kErrorLaunchFailed ? "CUDA_ERROR_LAUNCH_FAILED" : "CUDA_ERROR";
    return kSuccess;
  }
  static CUresult GetErrorString(CUresult, const char** text) {
    *text = "of the fake driver";
    return kSuccess;
  }
  static CUresult DeviceGetCount(int* count) {
    return CallAnywhere("cuDeviceGetCount", [&](FakeDriver&) {
      *count = 1;
      return kSuccess;
    });
  }
  static CUresult DeviceGet(CUdevice* device, int ordinal) {
    return CallAnywhere("cuDeviceGet", [&](FakeDriver&) {
      *device = ordinal;
      return ordinal == 0 ? kSuccess : kErrorInvalidValue;
    });
  }
  static CUresult PrimaryCtxRetain(CUcontext* context, CUdevice) {
    return CallAnywhere("cuDevicePrimaryCtxRetain", [&](FakeDriver& driver) {
      ++driver.contexts_;
      *context = reinterpret_cast<CUcontext>(&driver);
      return kSuccess;
    });
  }
  static CUresult PrimaryCtxRelease(CUdevice) {
    return Free("cuDevicePrimaryCtxRelease", [](FakeDriver& driver) {
      --driver.contexts_;
      return kSuccess;
    });
  }
  static CUresult CtxSetCurrent(CUcontext context) {
    return CallAnywhere("cuCtxSetCurrent", [&](FakeDriver&) {
      current_context = context;
      return kSuccess;
    });
  }
  static CUresult CtxSynchronize() {
    return Free("cuCtxSynchronize", [](FakeDriver& driver) { return driver.RunAll(); });
  }

  static CUresult MemGetInfo(size_t* free, size_t* total) {
    return Call("cuMemGetInfo", [&](FakeDriver& driver) {
      *free = driver.memory_ - driver.used_;
      *total = driver.memory_;
      return kSuccess;
    });
  }
  static CUresult MemAlloc(CUdeviceptr* memory, size_t bytes) {
    return Call("cuMemAlloc", [&](FakeDriver& driver) {
      if (bytes == 0) return kErrorInvalidValue;
      if (bytes > driver.memory_ - driver.used_) return kErrorOutOfMemory;
      auto buffer = driver.work_.Allocate(bytes);
      if (!buffer.ok()) return kErrorOutOfMemory;
      *memory = reinterpret_cast<CUdeviceptr>(buffer->get());
      driver.used_ += bytes;
      driver.buffers_[*memory] = {*std::move(buffer), bytes};
      return kSuccess;
    });
  }
  static CUresult MemFree(CUdeviceptr memory) {
    return Free("cuMemFree", [&](FakeDriver& driver) {
      const auto found = driver.buffers_.find(memory);
      if (found == driver.buffers_.end()) return kErrorInvalidValue;
      const CUresult result = driver.RunAll();  // as the driver waits for the device
      driver.used_ -= found->second.bytes;
      driver.buffers_.erase(found);
      return result;
    });
  }
  static CUresult MemHostAlloc(void** memory, size_t bytes, unsigned int) {
    return Call("cuMemHostAlloc", [&](FakeDriver& driver) {
      auto buffer = driver.work_.AllocatePinned(bytes);
      if (!buffer.ok()) return kErrorOutOfMemory;
      *memory = buffer->get();
      driver.pinned_[*memory] = *std::move(buffer);
      return kSuccess;
    });
  }
  static CUresult MemFreeHost(void* memory) {
    return Free("cuMemFreeHost", [&](FakeDriver& driver) {
      const CUresult result = driver.RunAll();
      return driver.pinned_.erase(memory) == 1 ? result : kErrorInvalidValue;
    });
  }
  static CUresult MemHostRegister(void* memory, size_t bytes, unsigned int) {
    return Call("cuMemHostRegister", [&](FakeDriver& driver) {
      if (bytes == 0) return kErrorInvalidValue;
      return driver.registered_.insert(memory).second ? kSuccess : CUresult{712};
    });
  }
  static CUresult MemHostUnregister(void* memory) {
    return Free("cuMemHostUnregister", [&](FakeDriver& driver) {
      const CUresult result = driver.RunAll();
      return driver.registered_.erase(memory) == 1 ? result : kErrorInvalidValue;
    });
  }

  static CUresult MemcpyHtoD(CUdeviceptr to, const void* from, size_t bytes, CUstream stream) {
    return Call("cuMemcpyHtoDAsync", [&](FakeDriver& driver) {
      if (!driver.IsDeviceMemory(to, bytes)) return kErrorInvalidValue;
      HostStream* const found = driver.Find(stream);
      if (found == nullptr) return kErrorInvalidHandle;
      found->CopyToDevice(Address(to), from, bytes);
      return kSuccess;
    });
  }
  static CUresult MemcpyDtoH(void* to, CUdeviceptr from, size_t bytes, CUstream stream) {
    return Call("cuMemcpyDtoHAsync", [&](FakeDriver& driver) {
      if (!driver.IsDeviceMemory(from, bytes)) return kErrorInvalidValue;
      HostStream* const found = driver.Find(stream);
      if (found == nullptr) return kErrorInvalidHandle;
      found->CopyToHost(to, Address(from), bytes);
      return kSuccess;
    });
  }

  static CUresult StreamCreate(CUstream* stream, unsigned int) {
    return Call("cuStreamCreate", [&](FakeDriver& driver) {
      std::unique_ptr<worker::Stream> made = *driver.work_.CreateStream({});
      *stream = reinterpret_cast<CUstream>(made.get());
      driver.streams_[*stream] = std::move(made);
      return kSuccess;
    });
  }
  static CUresult StreamDestroy(CUstream stream) {
    return Free("cuStreamDestroy", [&](FakeDriver& driver) {
      const CUresult result = driver.RunAll();  // a driver lets it come to its end, too
      return driver.streams_.erase(stream) == 1 ? result : kErrorInvalidHandle;
    });
  }
  static CUresult StreamSynchronize(CUstream stream) {
    return Call("cuStreamSynchronize", [&](FakeDriver& driver) {
      HostStream* const found = driver.Find(stream);
      if (found == nullptr) return kErrorInvalidHandle;
      const std::unique_ptr<worker::Event> reached = *driver.work_.CreateEvent();
      found->Record(reached.get());
      reached->Wait().IgnoreError();
      return driver.WorkResult();
    });
  }
  static CUresult StreamWaitEvent(CUstream stream, CUevent event, unsigned int) {
    return Call("cuStreamWaitEvent", [&](FakeDriver& driver) {
      HostStream* const found = driver.Find(stream);
      worker::Event* const point = driver.Find(event);
      if (found == nullptr || point == nullptr) return kErrorInvalidHandle;
      found->WaitFor(point);
      return kSuccess;
    });
  }
  static CUresult EventCreate(CUevent* event, unsigned int) {
    return Call("cuEventCreate", [&](FakeDriver& driver) {
      std::unique_ptr<worker::Event> made = *driver.work_.CreateEvent();
      *event = reinterpret_cast<CUevent>(made.get());
      driver.events_[*event] = std::move(made);
      return kSuccess;
    });
  }
  static CUresult EventDestroy(CUevent event) {
    return Free("cuEventDestroy", [&](FakeDriver& driver) {
      const CUresult result = driver.RunAll();
      return driver.events_.erase(event) == 1 ? result : kErrorInvalidHandle;
    });
  }
  static CUresult EventRecord(CUevent event, CUstream stream) {
    return Call("cuEventRecord", [&](FakeDriver& driver) {
      HostStream* const found = driver.Find(stream);
      worker::Event* const point = driver.Find(event);
      if (found == nullptr || point == nullptr) return kErrorInvalidHandle;
      found->Record(point);
      return kSuccess;
    });
  }
  static CUresult EventSynchronize(CUevent event) {
    return Call("cuEventSynchronize", [&](FakeDriver& driver) {
      worker::Event* const point = driver.Find(event);
      if (point == nullptr) return kErrorInvalidHandle;
      point->Wait().IgnoreError();
      return driver.WorkResult();
    });
  }
};

FakeDriver::FakeDriver(uint64_t seed) : work_(/*threads=*/1, seed) {
  LOCKSTEP_CHECK(current_driver == nullptr);
  current_driver = this;
}

FakeDriver::~FakeDriver() {
  current_driver = nullptr;
  current_context = nullptr;
}

const DriverFunctions& FakeDriver::functions() {
  static const DriverFunctions functions = {
      .Init = &FakeFunctions::Init,
      .DriverGetVersion = &FakeFunctions::DriverGetVersion,
      .GetErrorName = &FakeFunctions::GetErrorName,
      .GetErrorString = &FakeFunctions::GetErrorString,
      .DeviceGetCount = &FakeFunctions::DeviceGetCount,
      .DeviceGet = &FakeFunctions::DeviceGet,
      .DevicePrimaryCtxRetain = &FakeFunctions::PrimaryCtxRetain,
      .DevicePrimaryCtxRelease = &FakeFunctions::PrimaryCtxRelease,
      .CtxSetCurrent = &FakeFunctions::CtxSetCurrent,
      .CtxSynchronize = &FakeFunctions::CtxSynchronize,
      .MemGetInfo = &FakeFunctions::MemGetInfo,
      .MemAlloc = &FakeFunctions::MemAlloc,
      .MemFree = &FakeFunctions::MemFree,
      .MemHostAlloc = &FakeFunctions::MemHostAlloc,
      .MemFreeHost = &FakeFunctions::MemFreeHost,
      .MemHostRegister = &FakeFunctions::MemHostRegister,
      .MemHostUnregister = &FakeFunctions::MemHostUnregister,
      .MemcpyHtoDAsync = &FakeFunctions::MemcpyHtoD,
      .MemcpyDtoHAsync = &FakeFunctions::MemcpyDtoH,
      .StreamCreate = &FakeFunctions::StreamCreate,
      .StreamDestroy = &FakeFunctions::StreamDestroy,
      .StreamSynchronize = &FakeFunctions::StreamSynchronize,
      .StreamWaitEvent = &FakeFunctions::StreamWaitEvent,
      .EventCreate = &FakeFunctions::EventCreate,
      .EventDestroy = &FakeFunctions::EventDestroy,
      .EventRecord = &FakeFunctions::EventRecord,
      .EventSynchronize = &FakeFunctions::EventSynchronize,
  };
  return functions;
}

void FakeDriver::FailCall(int64_t index, CUresult result) {
  absl::MutexLock lock(&mutex_);
  failing_call_ = calls_ + index;
  failing_result_ = result;
}

int64_t FakeDriver::calls() const {
  absl::MutexLock lock(&mutex_);
  return calls_;
}

std::string FakeDriver::failed_call() const {
  absl::MutexLock lock(&mutex_);
  return failed_call_;
}

void FakeDriver::SetMemory(size_t bytes) {
  absl::MutexLock lock(&mutex_);
  memory_ = bytes;
}

size_t FakeDriver::live() const {
  absl::MutexLock lock(&mutex_);
  return buffers_.size() + pinned_.size() + registered_.size() + streams_.size() + events_.size() +
         contexts_;
}

CUresult FakeDriver::Enter(const char* call, bool needs_context) {
  if (calls_++ == failing_call_) {
    failed_call_ = call;
    return failing_result_;
  }
  const bool has_context = current_context == reinterpret_cast<CUcontext>(this);
  if (needs_context && !has_context) return kErrorInvalidContext;
  return WorkResult();
}

// An error of the work stays, and every call returns it.
CUresult FakeDriver::WorkResult() const {
  return work_.status().ok() ? kSuccess : kErrorLaunchFailed;
}

CUresult FakeDriver::RunAll() {
  const std::unique_ptr<worker::Event> reached = *work_.CreateEvent();
  for (auto& [handle, stream] : streams_) {
    stream->Record(reached.get());
    reached->Wait().IgnoreError();
  }
  return WorkResult();
}

bool FakeDriver::IsDeviceMemory(CUdeviceptr begin, size_t bytes) const {
  auto after = buffers_.upper_bound(begin);
  if (after == buffers_.begin()) return false;
  const auto& [address, buffer] = *--after;
  return begin - address <= buffer.bytes && bytes <= buffer.bytes - (begin - address);
}

HostStream* FakeDriver::Find(CUstream stream) {
  const auto found = streams_.find(stream);
  return found == streams_.end() ? nullptr : static_cast<HostStream*>(found->second.get());
}

worker::Event* FakeDriver::Find(CUevent event) {
  const auto found = events_.find(event);
  return found == events_.end() ? nullptr : found->second.get();
}

}  // namespace lockstep::test
