// Sums over the devices of one process, by a library that knows how they are linked.
#pragma once

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

  // Of the library, with its version: "NCCL 2.28.9".
  virtual std::string name() const = 0;
  // Enqueues by_device[0] = the sum of all of `by_device`, which have one shape and are float32:
  // each is in memory of its device, where streams[i] takes part. Afterwards streams[0] has passed
  // the sum, and others the use of theirs. Calls that are enqueued run in their order. The order of
  // the additions is the library's, the same for each call of one length.
  //
  // Errors are final: nothing is enqueued any more. Abort is then called before anything waits for
  // the streams.
  virtual absl::Status ReduceToFirst(std::span<const MutableTensorView> by_device,
                                     std::span<Stream* const> streams) = 0;
  // Blocks until the devices have reached these events, one of each, recorded behind what was
  // enqueued. Other than Event::Wait returns an error as soon as one device has failed, while
  // others still wait for it.
  virtual absl::Status Await(std::span<Event* const> by_device) = 0;
  // Ends what was enqueued, whether or not all devices have come to it: where one has failed, the
  // others would wait for it for ever. Results are lost, and later ReduceToFirst may fail.
  virtual void Abort() = 0;
};

}  // namespace lockstep::worker
