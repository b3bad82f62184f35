// Queues of work on a device, and the points in them that others wait for.
#pragma once

#include <cstddef>

#include "absl/status/status.h"

namespace lockstep::worker {

// A point in a stream: that of the last Record. Made and recorded again and again; one that was
// never recorded has been reached. Must not be destroyed before it is reached.
class Event {
 public:
  virtual ~Event() = default;

  // Blocks the host until the stream has reached the point. The device's status().
  virtual absl::Status Wait() = 0;
};

// Work runs in order, beside that of other streams. Calls enqueue it and return; what they name
// stays valid and unchanged until the stream has passed it. Errors are the device's. Used by one
// thread at a time. No work runs once the stream is destroyed; what had not run before may never
// run.
class Stream {
 public:
  virtual ~Stream() = default;

  // Host memory is pageable, pinned or registered.
  virtual void CopyToDevice(void* to, const void* from, size_t bytes) = 0;
  virtual void CopyToHost(void* to, const void* from, size_t bytes) = 0;
  // To memory of this device, from that of another of its kind.
  virtual void CopyFromPeer(void* to, const void* from, size_t bytes) = 0;

  virtual void Record(Event* event) = 0;
  // Later work of this stream runs after the last Record of `event`, which is of this device or of
  // another of its kind. Does not block the host.
  virtual void WaitFor(Event* event) = 0;
};

}  // namespace lockstep::worker
