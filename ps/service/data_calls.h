// Push and Pull: raw bodies on completion queues, one polling thread per queue that also does the
// summing, while the data is in its core's cache. Gradients go to the shard in the slices in which
// they came; values leave in slices over the published tensors.
#pragma once

#include <grpcpp/completion_queue.h>

#include <thread>
#include <vector>

#include "common/base/gate.h"
#include "ps/service/control_service.h"
#include "ps/service/memory_desk.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

class DataCalls {
 public:
  // All outlive it; `memory` may be null.
  DataCalls(ControlService* service, Shard* shard, const MemoryDesk* memory)
      : service_(service), shard_(shard), memory_(memory) {}
  ~DataCalls() { Join(); }

  // Takes calls from `queue`, on a thread of its own, until the queue is shut down and empty.
  void Serve(grpc::ServerCompletionQueue* queue);
  // Takes no more calls and waits until none is in flight. Calls that are parked in the shard must
  // be ended first (Shard::Stop).
  void Quiesce() { gate_.Close(); }
  // After the queues were shut down.
  void Join();

 private:
  ControlService* const service_;
  Shard* const shard_;
  const MemoryDesk* const memory_;
  Gate gate_;  // each call in flight holds a pass
  std::vector<std::thread> pollers_;
};

}  // namespace lockstep::ps
