// The memory that a worker shares with the ps of its host, where the job lets it, and that its
// device copies directly from and to.
#pragma once

#include <cstdint>
#include <memory>

#include "common/client/gradient_memory.h"
#include "common/client/ps_transport.h"
#include "proto/job.pb.h"
#include "worker/device/device.h"

namespace lockstep::worker {

// Thread-compatible. Outlived by nothing that computes into gradients().
class SharedMemory {
 public:
  // `gradient_bytes`: of all trainers. Where there is not so much memory, or the device cannot
  // register it, a line in the log says so and all goes on without.
  SharedMemory(const JobDef& job, std::shared_ptr<Device> device, uint64_t gradient_bytes);

  // Whether towers take values from a ps's memory. Those on a GPU copy them anyway: they need no
  // copy on the host before.
  static bool ReadsValuesInPlace(const TransportDef& transport, const Device& device);

  // Null: gradients are on the heap.
  GradientMemory* gradients() const { return gradients_.get(); }
  bool values_in_place() const { return ReadsValuesInPlace(transport_, *device_); }

  // To a ps of this name. Any thread.
  std::unique_ptr<TensorTransport> Connect(const ClientOptions& ps) const;

 private:
  const TransportDef transport_;
  const std::shared_ptr<Device> device_;
  std::unique_ptr<GradientMemory> gradients_;
  HostRegistration registration_;  // of gradients_
};

}  // namespace lockstep::worker
