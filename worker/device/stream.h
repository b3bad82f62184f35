// Queues of work on a device, and the points in them that others wait for.
#pragma once

#include <cstddef>
#include <memory>

#include "absl/functional/function_ref.h"
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

// Work that a stream has captured, to be launched again and again. Ends before the device, and when
// no launch of it runs.
class WorkGraph {
 public:
  virtual ~WorkGraph() = default;
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
  // Both of this device; they do not overlap.
  virtual void CopyOnDevice(void* to, const void* from, size_t bytes) = 0;
  // To memory of this device, from that of another of its kind.
  virtual void CopyFromPeer(void* to, const void* from, size_t bytes) = 0;

  virtual void Record(Event* event) = 0;
  // Later work of this stream runs after the last Record of `event`, which is of this device or of
  // another of its kind. Does not block the host.
  virtual void WaitFor(Event* event) = 0;

  // Keeps what `enqueue` enqueues on this stream instead of running it. `enqueue` waits for nothing
  // and takes no memory of the device. Null, with nothing kept: this stream cannot capture, or not
  // this work, or `enqueue` or the device has failed. The same work can still be enqueued; it tells
  // the error.
  virtual std::unique_ptr<WorkGraph> Capture(absl::FunctionRef<absl::Status()> enqueue) = 0;
  // Enqueues what this stream has captured as if its calls were made now, with the same arguments:
  // it finds what is in memory when it runs, and its events are recorded anew.
  virtual void Launch(const WorkGraph& graph) = 0;
};

}  // namespace lockstep::worker
