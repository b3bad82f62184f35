#include "worker/device/cuda/cuda_stream.h"

#include <algorithm>
#include <cstring>
#include <utility>

#include "absl/strings/str_cat.h"

namespace lockstep::worker::cuda {
namespace {

// What can be enqueued all the same. An executable graph takes memory of the device.
bool IsRefusalToCapture(CUresult result) {
  return result == kErrorOutOfMemory || result == kErrorNotPermitted ||
         result == kErrorNotSupported ||
         (result >= kErrorCaptureUnsupported && result <= kErrorCaptureWrongThread);
}

}  // namespace

CudaEvent::~CudaEvent() {
  device_->MakeCurrent();
  const CUresult result = device_->driver()->EventDestroy(event_);
  if (result != kSuccess) device_->Fail(result, "cuEventDestroy");
}

absl::Status CudaEvent::Wait() {
  if (!device_->has_failed()) {
    device_->MakeCurrent();
    const CUresult result = device_->driver().waits().EventSynchronize(event_);
    if (result != kSuccess) device_->Fail(result, "cuEventSynchronize");
  }
  if (device_->has_failed()) device_->WaitForAll();
  return device_->status();
}

absl::StatusOr<bool> CudaEvent::IsReached() const {
  device_->MakeCurrent();
  const CUresult result = device_->driver()->EventQuery(event_);
  if (result != kSuccess && result != kErrorNotReady) device_->Fail(result, "cuEventQuery");
  if (device_->has_failed()) return device_->status();
  return result == kSuccess;
}

CudaStream::~CudaStream() {
  device_->MakeCurrent();
  CUresult result = device_->driver().waits().StreamSynchronize(stream_);
  if (result != kSuccess) device_->Fail(result, "cuStreamSynchronize");
  result = device_->driver()->StreamDestroy(stream_);
  if (result != kSuccess) device_->Fail(result, "cuStreamDestroy");
}

CUstream CudaStream::get() const {
  device_->MakeCurrent();
  return stream_;
}

bool CudaStream::Begin() const {
  if (has_failed()) return false;
  device_->MakeCurrent();
  return !device_->has_failed();
}

void CudaStream::CopyToDevice(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || has_failed()) return;
  const bool is_direct = is_capturing_ || bytes < PinnedRing::kLeastBytes ||
                         device_->IsPinned({static_cast<const std::byte*>(from), bytes});
  if (!is_direct && HasRing()) return CopyInPieces(to, from, bytes);
  EnqueueCopyToDevice(to, from, bytes);
}

bool CudaStream::HasRing() {
  if (ring_ != nullptr) return true;
  if (!device_->can_pin_rings()) return false;
  absl::StatusOr<std::unique_ptr<PinnedRing>> ring = PinnedRing::Create(device_);
  if (ring.ok()) {
    ring_ = *std::move(ring);
  } else if (!device_->has_failed()) {
    device_->ReportNoRing(ring.status());
  }
  return ring_ != nullptr;
}

void CudaStream::CopyInPieces(void* to, const void* from, size_t bytes) {
  auto* next_to = static_cast<std::byte*>(to);
  const auto* next = static_cast<const std::byte*>(from);
  while (bytes > 0) {
    const absl::StatusOr<PinnedRing::Piece*> piece = ring_->Take();
    if (!piece.ok()) return;  // the device's error
    const size_t piece_bytes = std::min(bytes, PinnedRing::kPieceBytes);
    std::memcpy((*piece)->memory.get(), next, piece_bytes);
    EnqueueCopyToDevice(next_to, (*piece)->memory.get(), piece_bytes);
    Record((*piece)->is_free.get());
    next_to += piece_bytes;
    next += piece_bytes;
    bytes -= piece_bytes;
  }
}

void CudaStream::EnqueueCopyToDevice(void* to, const void* from, size_t bytes) {
  if (!Begin()) return;
  const CUresult result =
      device_->driver()->MemcpyHtoDAsync(reinterpret_cast<CUdeviceptr>(to), from, bytes, stream_);
  if (result != kSuccess) {
    return Fail(result, absl::StrCat("cuMemcpyHtoDAsync of ", bytes, " bytes"));
  }
  if (is_capturing_) {
    captured_.to_device += bytes;
  } else {
    device_->CountToDevice(bytes);
  }
}

void CudaStream::CopyToHost(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || !Begin()) return;
  const CUresult result =
      device_->driver()->MemcpyDtoHAsync(to, reinterpret_cast<CUdeviceptr>(from), bytes, stream_);
  if (result != kSuccess) {
    return Fail(result, absl::StrCat("cuMemcpyDtoHAsync of ", bytes, " bytes"));
  }
  if (is_capturing_) {
    captured_.to_host += bytes;
  } else {
    device_->CountToHost(bytes);
  }
}

void CudaStream::CopyFromPeer(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || !Begin()) return;
  // Addresses are of one space over all GPUs: they tell the driver whose memory it is.
  const CUresult result = device_->driver()->MemcpyAsync(
      reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes, stream_);
  if (result != kSuccess) {
    Fail(result, absl::StrCat("cuMemcpyAsync of ", bytes, " bytes from another GPU"));
  }
}

void CudaStream::CopyOnDevice(void* to, const void* from, size_t bytes) {
  if (bytes == 0 || !Begin()) return;
  const CUresult result = device_->driver()->MemcpyDtoDAsync(
      reinterpret_cast<CUdeviceptr>(to), reinterpret_cast<CUdeviceptr>(from), bytes, stream_);
  if (result != kSuccess) {
    Fail(result, absl::StrCat("cuMemcpyDtoDAsync of ", bytes, " bytes"));
  }
}

void CudaStream::Launch(const CudaKernel& kernel, unsigned int blocks, unsigned int threads,
                        void** arguments) {
  if (!Begin()) return;
  const CUresult result =
      device_->driver()->LaunchKernel(kernel.function, blocks, 1, 1, threads, 1, 1,
                                      /*shared_bytes=*/0, stream_, arguments, nullptr);
  if (result != kSuccess) Fail(result, absl::StrCat("cuLaunchKernel of ", kernel.name));
}

void CudaStream::Record(Event* event) {
  if (!Begin()) return;
  const CUevent own = static_cast<CudaEvent*>(event)->get();
  if (is_capturing_) {
    const CUresult result =
        device_->driver()->EventRecordWithFlags(own, stream_, kEventRecordExternal);
    if (result != kSuccess) Fail(result, "cuEventRecordWithFlags");
    return;
  }
  const CUresult result = device_->driver()->EventRecord(own, stream_);
  if (result != kSuccess) Fail(result, "cuEventRecord");
}

void CudaStream::WaitFor(Event* event) {
  if (!Begin()) return;
  const CUresult result = device_->driver()->StreamWaitEvent(
      stream_, static_cast<CudaEvent*>(event)->get(), is_capturing_ ? kEventWaitExternal : 0);
  if (result != kSuccess) Fail(result, "cuStreamWaitEvent");
}

void CudaStream::Fail(CUresult result, absl::string_view call) {
  if (is_capturing_ && IsRefusalToCapture(result)) {
    capture_error_.Update(device_->driver().ToStatus(result, call));
  } else {
    device_->Fail(result, call);
  }
}

std::unique_ptr<WorkGraph> CudaStream::Capture(absl::FunctionRef<absl::Status()> enqueue) {
  if (!Begin()) return nullptr;
  is_capturing_ = true;
  captured_ = {};
  std::unique_ptr<WorkGraph> graph;
  if (const CUgraph captured = CaptureGraph(enqueue); captured != nullptr) {
    graph = Instantiate(captured);
  }
  is_capturing_ = false;
  const absl::Status error = std::exchange(capture_error_, absl::OkStatus());
  if (!error.ok() && !device_->has_failed()) device_->ReportNoGraph(error);
  return graph;
}

CUgraph CudaStream::CaptureGraph(absl::FunctionRef<absl::Status()> enqueue) {
  const absl::ReaderMutexLock lock(device_->capture_mutex());
  CUresult result = device_->driver()->StreamBeginCapture(stream_, kCaptureThreadLocal);
  if (result != kSuccess) {
    Fail(result, "cuStreamBeginCapture");
    return nullptr;
  }
  capture_error_.Update(enqueue());
  CUgraph graph = nullptr;
  result = device_->driver()->StreamEndCapture(stream_, &graph);
  if (result != kSuccess) Fail(result, "cuStreamEndCapture");
  return graph;
}

std::unique_ptr<WorkGraph> CudaStream::Instantiate(CUgraph graph) {
  std::unique_ptr<CudaGraph> made;
  if (Begin()) {
    CUgraphExec executable = nullptr;
    const CUresult result = device_->driver()->GraphInstantiate(&executable, graph, /*flags=*/0);
    if (result == kSuccess) {
      made = std::make_unique<CudaGraph>(device_, executable, captured_);
      if (!Upload(executable)) made.reset();
    } else {
      Fail(result, "cuGraphInstantiateWithFlags");
    }
  }
  const CUresult result = device_->driver()->GraphDestroy(graph);
  if (result != kSuccess) device_->Fail(result, "cuGraphDestroy");
  return made;
}

bool CudaStream::Upload(CUgraphExec executable) {
  const CUresult result = device_->driver()->GraphUpload(executable, stream_);
  if (result != kSuccess) Fail(result, "cuGraphUpload");
  return result == kSuccess;
}

void CudaStream::Launch(const WorkGraph& graph) {
  if (!Begin()) return;
  const auto& own = static_cast<const CudaGraph&>(graph);
  const CUresult result = device_->driver()->GraphLaunch(own.get(), stream_);
  if (result != kSuccess) return Fail(result, "cuGraphLaunch");
  device_->CountToDevice(own.copied().to_device);
  device_->CountToHost(own.copied().to_host);
  device_->CountGraphLaunch();
}

}  // namespace lockstep::worker::cuda
