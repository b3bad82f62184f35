// Memory of the device and of the host, and copies.
#include <memory>
#include <utility>

#include "tests/support/cuda/fake_calls.h"

namespace lockstep::test {

using worker::HostStream;
using worker::cuda::CUdeviceptr;
using worker::cuda::CUresult;
using worker::cuda::CUstream;
using worker::cuda::DriverFunctions;
using worker::cuda::kErrorOutOfMemory;
using worker::cuda::kSuccess;

namespace {

void* Address(CUdeviceptr memory) { return reinterpret_cast<void*>(memory); }

}  // namespace

void FakeMemoryCalls::AddTo(DriverFunctions* functions) {
  functions->MemGetInfo = [](size_t* free, size_t* total) -> CUresult {
    return Call("cuMemGetInfo", [&](FakeDriver& driver) {
      *free = driver.memory_ - driver.used_[static_cast<size_t>(driver.CurrentDevice())];
      *total = driver.memory_;
      return kSuccess;
    });
  };
  functions->MemAlloc = [](CUdeviceptr* memory, size_t bytes) -> CUresult {
    return Call("cuMemAlloc", [&](FakeDriver& driver) {
      if (bytes == 0) return kErrorInvalidValue;
      const int device = driver.CurrentDevice();
      size_t& used = driver.used_[static_cast<size_t>(device)];
      if (bytes > driver.memory_ - used) return kErrorOutOfMemory;
      auto buffer = driver.WorkOf(device)->Allocate(bytes);
      if (!buffer.ok()) return kErrorOutOfMemory;
      *memory = reinterpret_cast<CUdeviceptr>(buffer->get());
      used += bytes;
      ++driver.allocations_;
      driver.buffers_[*memory] = {*std::move(buffer), bytes, device};
      return kSuccess;
    });
  };
  functions->MemFree = [](CUdeviceptr memory) -> CUresult {
    return Free("cuMemFree", [&](FakeDriver& driver) {
      const auto found = driver.buffers_.find(memory);
      if (found == driver.buffers_.end()) return kErrorInvalidValue;
      const CUresult result = driver.RunAll();  // as the driver waits for the device
      driver.used_[static_cast<size_t>(found->second.device)] -= found->second.bytes;
      driver.buffers_.erase(found);
      return result;
    });
  };
  functions->MemHostAlloc = [](void** memory, size_t bytes, unsigned int) -> CUresult {
    return Call("cuMemHostAlloc", [&](FakeDriver& driver) {
      auto buffer = driver.work_.AllocatePinned(bytes);
      if (!buffer.ok()) return kErrorOutOfMemory;
      *memory = buffer->get();
      ++driver.pinned_allocations_;
      driver.pinned_[*memory] = {*std::move(buffer), bytes};
      return kSuccess;
    });
  };
  functions->MemFreeHost = [](void* memory) -> CUresult {
    return Free("cuMemFreeHost", [&](FakeDriver& driver) {
      const CUresult result = driver.RunAll();
      return driver.pinned_.erase(memory) == 1 ? result : kErrorInvalidValue;
    });
  };
  functions->MemHostRegister = [](void* memory, size_t bytes, unsigned int) -> CUresult {
    return Call("cuMemHostRegister", [&](FakeDriver& driver) {
      if (bytes == 0) return kErrorInvalidValue;
      return driver.registered_.try_emplace(memory, nullptr, bytes).second ? kSuccess
                                                                           : CUresult{712};
    });
  };
  functions->MemHostUnregister = [](void* memory) -> CUresult {
    return Free("cuMemHostUnregister", [&](FakeDriver& driver) {
      const CUresult result = driver.RunAll();
      return driver.registered_.erase(memory) == 1 ? result : kErrorInvalidValue;
    });
  };

  functions->MemcpyHtoDAsync = [](CUdeviceptr to, const void* from, size_t bytes,
                                  CUstream stream) -> CUresult {
    return Call("cuMemcpyHtoDAsync", [&](FakeDriver& driver) {
      if (!driver.IsOwnMemory(to, bytes)) return kErrorInvalidValue;
      if (!driver.IsPinned(from, bytes)) ++driver.copies_from_pageable_;
      if (driver.copies_to_device_++ == driver.omitted_copy_) return kSuccess;
      return driver.Submit(stream,
                           [=](HostStream* on) { on->CopyToDevice(Address(to), from, bytes); });
    });
  };
  functions->MemcpyDtoHAsync = [](void* to, CUdeviceptr from, size_t bytes,
                                  CUstream stream) -> CUresult {
    return Call("cuMemcpyDtoHAsync", [&](FakeDriver& driver) {
      if (!driver.IsOwnMemory(from, bytes)) return kErrorInvalidValue;
      const CUresult result =
          driver.Submit(stream, [=](HostStream* on) { on->CopyToHost(to, Address(from), bytes); });
      if (result != kSuccess || !driver.blocks_pageable_copies_) return result;
      if (!driver.IsPinned(to, bytes) && !driver.RunStream(stream)) driver.has_hung_ = true;
      return driver.WorkResult();
    });
  };

  functions->MemcpyDtoDAsync = [](CUdeviceptr to, CUdeviceptr from, size_t bytes,
                                  CUstream stream) -> CUresult {
    return Call("cuMemcpyDtoDAsync", [&](FakeDriver& driver) {
      if (!driver.IsOwnMemory(to, bytes)) return kErrorInvalidValue;
      if (!driver.IsOwnMemory(from, bytes)) return kErrorInvalidValue;
      return driver.Submit(
          stream, [=](HostStream* on) { on->CopyToHost(Address(to), Address(from), bytes); });
    });
  };
  functions->MemcpyAsync = [](CUdeviceptr to, CUdeviceptr from, size_t bytes,
                              CUstream stream) -> CUresult {
    return Call("cuMemcpyAsync", [&](FakeDriver& driver) {
      if (!driver.IsOwnMemory(to, bytes)) return kErrorInvalidValue;
      if (!driver.DeviceOf(from, bytes).has_value()) return kErrorInvalidValue;
      return driver.Submit(
          stream, [=](HostStream* on) { on->CopyFromPeer(Address(to), Address(from), bytes); });
    });
  };
}

}  // namespace lockstep::test
