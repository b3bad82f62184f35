// A stream whose work is functions of the host: what ops that are plain C++ run on. The CPU's
// streams are, and those of devices that imitate others in tests.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "worker/device/stream.h"

namespace lockstep::worker {

// One piece of work: run(object, argument, number). Small enough to queue without allocating.
struct HostTask {
  absl::Status (*run)(void* object, const void* argument, uint64_t number) = nullptr;
  void* object = nullptr;
  const void* argument = nullptr;
  uint64_t number = 0;
};

class HostStream : public Stream {
 public:
  // An error becomes the device's; after one the task is skipped.
  virtual void Enqueue(const HostTask& task) = 0;

  void CopyToDevice(void* to, const void* from, size_t bytes) final { Copy(to, from, bytes); }
  void CopyToHost(void* to, const void* from, size_t bytes) final { Copy(to, from, bytes); }
  void CopyOnDevice(void* to, const void* from, size_t bytes) final { Copy(to, from, bytes); }
  void CopyFromPeer(void* to, const void* from, size_t bytes) override { Copy(to, from, bytes); }
  // Cannot capture: a function of the host costs little more to enqueue than to call.
  std::unique_ptr<WorkGraph> Capture(absl::FunctionRef<absl::Status()>) final { return nullptr; }
  void Launch(const WorkGraph&) final {}

 protected:
  static HostTask CopyTask(void* to, const void* from, size_t bytes);

 private:
  void Copy(void* to, const void* from, size_t bytes) { Enqueue(CopyTask(to, from, bytes)); }
};

}  // namespace lockstep::worker
