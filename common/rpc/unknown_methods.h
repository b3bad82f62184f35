// Answers calls of methods that no service of a server has. gRPC would do it too, but not ask a
// CallerCheck first.
#pragma once

#include <grpcpp/generic/async_generic_service.h>
#include <grpcpp/server_builder.h>

#include "common/rpc/service.h"

namespace lockstep::rpc {

// Outlives the server.
class UnknownMethods {
 public:
  void Register(grpc::ServerBuilder* builder) { builder->RegisterAsyncGenericService(&calls_); }
  // UNIMPLEMENTED, or the status of the queue's CallerCheck, for every call that comes on this
  // queue. Once for each queue.
  void Serve(const ServingQueue& queue);

 private:
  grpc::AsyncGenericService calls_;
};

}  // namespace lockstep::rpc
