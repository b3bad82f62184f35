// A completion queue and the one thread that polls it. All of a process's calls, those that it
// serves and those that it makes, should come on one: gRPC lets any thread that polls read any
// socket, and hands what it read to the thread whose queue it is for. With a single one nothing is
// handed over, and received bytes are used while they are in its core's cache. (For the same reason
// nothing here uses gRPC's callback interface, which polls on threads of its own.)
#pragma once

#include <grpcpp/completion_queue.h>

#include <memory>
#include <thread>

namespace lockstep::rpc {

// Every tag is a QueueEvent*. What happens on the thread must not wait for anything else that
// happens on it.
class EventQueue {
 public:
  explicit EventQueue(
      std::unique_ptr<grpc::CompletionQueue> queue = std::make_unique<grpc::CompletionQueue>());
  ~EventQueue() { Drain(); }

  // Waits for the operations in flight; none may be started afterwards. Not on its own thread.
  void Drain();

  grpc::CompletionQueue* queue() const { return queue_.get(); }

 private:
  const std::unique_ptr<grpc::CompletionQueue> queue_;
  std::thread poller_;
};

}  // namespace lockstep::rpc
