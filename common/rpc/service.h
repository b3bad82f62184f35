// A gRPC service whose calls come on the server's queues.
#pragma once

#include <grpcpp/completion_queue.h>

#include "common/base/gate.h"
#include "common/rpc/raw_methods.h"

namespace lockstep::rpc {

class CallerCheck;
class RefusalSender;

// Where calls come. Each holds a pass of the gate, so that a server that stops can wait for them.
struct ServingQueue {
  grpc::ServerCompletionQueue* queue;
  Gate* gate;
  const CallerCheck* callers;  // null: everybody may call
  RefusalSender* refusals;     // every error of a call is sent through it
};

class Service {
 public:
  virtual ~Service() = default;
  virtual RawMethods* methods() = 0;
  // Awaits calls of every method on this queue, each time anew, and asks the queue's CallerCheck
  // about each. Once for each queue.
  virtual void Serve(const ServingQueue& queue) = 0;
};

}  // namespace lockstep::rpc
