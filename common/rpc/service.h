// A gRPC service whose calls come on the server's queues.
#pragma once

#include <grpcpp/completion_queue.h>
#include <grpcpp/impl/service_type.h>

#include "common/base/gate.h"

namespace lockstep::rpc {

// Where calls come. Each holds a pass of the gate, so that a server that stops can wait for them.
struct ServingQueue {
  grpc::ServerCompletionQueue* queue;
  Gate* gate;
};

class Service {
 public:
  virtual ~Service() = default;
  // The generated asynchronous service.
  virtual grpc::Service* methods() = 0;
  // Awaits calls of every method on this queue, each time anew. Once for each queue.
  virtual void Serve(const ServingQueue& queue) = 0;
};

}  // namespace lockstep::rpc
