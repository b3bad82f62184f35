// Queues of work on a GPU, and the points in them that others wait for.
#pragma once

#include <memory>

#include "worker/device/cuda/cuda_device.h"
#include "worker/device/cuda/cuda_graph.h"
#include "worker/device/cuda/cuda_module.h"
#include "worker/device/cuda/pinned_ring.h"
#include "worker/device/stream.h"

namespace lockstep::worker::cuda {

class CudaEvent : public Event {
 public:
  // Takes `event`, which is of `device`.
  CudaEvent(const CudaDevice* device, CUevent event) : device_(device), event_(event) {}
  ~CudaEvent() override;

  CUevent get() const { return event_; }

  // The host thread sleeps. After an error it waits for all work of the device, so that memory of
  // the host that copies name can be freed.
  absl::Status Wait() override;
  // Does not block. The device's status(), where it has failed.
  absl::StatusOr<bool> IsReached() const;

 private:
  const CudaDevice* const device_;
  const CUevent event_;
};

// An error of a call is the device's. Later calls enqueue nothing. What a capture refuses is an
// error of the capture alone, which then enqueues nothing more.
class CudaStream : public Stream {
 public:
  // Takes `stream`, which is of `device`.
  CudaStream(CudaDevice* device, CUstream stream) : device_(device), stream_(stream) {}
  // Waits for the work that was enqueued: it cannot be taken back.
  ~CudaStream() override;

  // For libraries that enqueue on it, which they must not after an error. Makes the device current.
  CUstream get() const;
  bool has_failed() const { return device_->has_failed() || !capture_error_.ok(); }

  void CopyToDevice(void* to, const void* from, size_t bytes) override;
  void CopyToHost(void* to, const void* from, size_t bytes) override;
  void CopyFromPeer(void* to, const void* from, size_t bytes) override;
  void CopyOnDevice(void* to, const void* from, size_t bytes) override;
  // Runs `blocks` > 0 blocks of `threads` threads. `arguments`: the address of each of the kernel's
  // parameters, read before this returns.
  void Launch(const CudaKernel& kernel, unsigned int blocks, unsigned int threads,
              void** arguments);
  void Record(Event* event) override;
  void WaitFor(Event* event) override;
  std::unique_ptr<WorkGraph> Capture(absl::FunctionRef<absl::Status()> enqueue) override;
  void Launch(const WorkGraph& graph) override;

 private:
  // From any memory of the host.
  void EnqueueCopyToDevice(void* to, const void* from, size_t bytes);
  // Returns when `from` is read.
  void CopyInPieces(void* to, const void* from, size_t bytes);
  // False: the driver has to copy with buffers of its own.
  bool HasRing();
  // False: the device has failed, or the capture.
  bool Begin() const;
  void Fail(CUresult result, absl::string_view call);
  // Null after an error, which Fail has got.
  CUgraph CaptureGraph(absl::FunctionRef<absl::Status()> enqueue);
  std::unique_ptr<WorkGraph> Instantiate(CUgraph graph);
  // Takes the memory of the device that launches need, so that they are not the ones to find that
  // there is none. False after an error, which Fail has got.
  bool Upload(CUgraphExec executable);

  CudaDevice* const device_;
  const CUstream stream_;
  std::unique_ptr<PinnedRing> ring_;  // null: nothing has needed it, or the host cannot pin it
  bool is_capturing_ = false;
  absl::Status capture_error_;  // of the capture at hand
  CopiedBytes captured_;        // by its work
};

}  // namespace lockstep::worker::cuda
