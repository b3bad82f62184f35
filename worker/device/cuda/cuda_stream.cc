#include "worker/device/cuda/cuda_stream.h"

#include "absl/strings/str_cat.h"

namespace lockstep::worker::cuda {

CudaEvent::~CudaEvent() {
  device_->MakeCurrent();
  const CUresult result = device_->driver()->EventDestroy(event_);
  if (result != kSuccess) device_->Fail(result, "cuEventDestroy");
}

absl::Status CudaEvent::Wait() {
  if (!device_->has_failed()) {
    device_->MakeCurrent();
    const CUresult result = device_->driver()->EventSynchronize(event_);
    if (result != kSuccess) device_->Fail(result, "cuEventSynchronize");
  }
  if (device_->has_failed()) device_->WaitForAll();
  return device_->status();
}

CudaStream::~CudaStream() {
  device_->MakeCurrent();
  CUresult result = device_->driver()->StreamSynchronize(stream_);
  if (result != kSuccess) device_->Fail(result, "cuStreamSynchronize");
  result = device_->driver()->StreamDestroy(stream_);
  if (result != kSuccess) device_->Fail(result, "cuStreamDestroy");
}

CUstream CudaStream::get() const {
  device_->MakeCurrent();
  return stream_;
}

bool CudaStream::Begin() const {
  if (device_->has_failed()) return false;
  device_->MakeCurrent();
  return !device_->has_failed();
}

void CudaStream::CopyToDevice(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || !Begin()) return;
  const CUresult result =
      device_->driver()->MemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(to), from, bytes, stream_);
  if (result != kSuccess) {
    return device_->Fail(result, absl::StrCat("cuMemcpyHtoDAsync of ", bytes, " bytes"));
  }
  device_->CountToDevice(bytes);
}

void CudaStream::CopyToHost(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || !Begin()) return;
  const CUresult result =
      device_->driver()->MemcpyDtoHAsync(to, reinterpret_cast<CUdeviceptr>(from), bytes, stream_);
  if (result != kSuccess) {
    return device_->Fail(result, absl::StrCat("cuMemcpyDtoHAsync of ", bytes, " bytes"));
  }
  device_->CountToHost(bytes);
}

void CudaStream::CopyFromPeer(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || !Begin()) return;
  // Addresses are of one space over all GPUs: they tell the driver whose memory it is.
  const CUresult result = device_->driver()->MemcpyAsync(
      reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes, stream_);
  if (result != kSuccess) {
    device_->Fail(result, absl::StrCat("cuMemcpyAsync of ", bytes, " bytes from another GPU"));
  }
}

void CudaStream::CopyOnDevice(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || !Begin()) return;
  const CUresult result = device_->driver()->MemcpyDtoDAsync(
      reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes, stream_);
  if (result != kSuccess) {
    device_->Fail(result, absl::StrCat("cuMemcpyDtoDAsync of ", bytes, " bytes"));
  }
}

void CudaStream::Launch(const CudaKernel& kernel, unsigned int blocks, unsigned int threads,
                        void** arguments) {
  if (!Begin()) return;
  const CUresult result =
      device_->driver()->LaunchKernel(kernel.function, blocks, 1, 1, threads, 1, 1,
                                      /*shared_bytes=*/0, stream_, arguments, nullptr);
  if (result != kSuccess) device_->Fail(result, absl::StrCat("cuLaunchKernel of ", kernel.name));
}

void CudaStream::Record(Event* event) {
  if (!Begin()) return;
  const CUresult result =
      device_->driver()->EventRecord(static_cast<CudaEvent*>(event)->get(), stream_);
  if (result != kSuccess) device_->Fail(result, "cuEventRecord");
}

void CudaStream::WaitFor(Event* event) {
  if (!Begin()) return;
  const CUresult result =
      device_->driver()->StreamWaitEvent(stream_, static_cast<CudaEvent*>(event)->get(), 0);
  if (result != kSuccess) device_->Fail(result, "cuStreamWaitEvent");
}

}  // namespace lockstep::worker::cuda
