// Sums over the devices of one process, by the links that they have.
#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "absl/status/status.h"
#include "common/tensor/tensor.h"
#include "worker/device/stream.h"

namespace lockstep::worker {

// Used by one thread at a time. Its devices outlive it; they are numbered as they were given.
class Communicator {
 public:
  virtual ~Communicator() = default;

  // For people: "NCCL 2.28.9".
  virtual std::string name() const = 0;
  // Makes room for sums of at most so many bytes. Before the first of them, while none runs.
  // RESOURCE_EXHAUSTED when there is not so much.
  virtual absl::Status Reserve(size_t bytes) = 0;
  // Enqueues by_device[0] = the sum of all of `by_device`, which have one shape and are float32:
  // each is in memory of its device, where streams[i] takes part. Values are lost, and the sum is
  // there, when all streams have passed it. Calls that are enqueued run in their order. The order
  // of the additions is the same for each call of one length.
  //
  // An error is final: later calls enqueue nothing. Abort is then called before anything waits for
  // the streams.
  virtual absl::Status ReduceToFirst(std::span<const MutableTensorView> by_device,
                                     std::span<Stream* const> streams) = 0;
  // Blocks until the devices have reached these events, one of each, recorded behind what was
  // enqueued. Unlike Event::Wait it returns an error as soon as one device has failed, while
  // others still wait for it.
  virtual absl::Status Await(std::span<Event* const> by_device) = 0;
  // Ends what was enqueued, whether or not all devices have come to it: where one has failed, the
  // others would wait for it for ever. Results are lost. Later ReduceToFirst may fail with `step`,
  // the error for which this is called.
  virtual void Abort(const absl::Status& step) = 0;
};

}  // namespace lockstep::worker
