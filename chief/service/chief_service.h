// The Chief service over gRPC: brings each call to the executor's thread, and its answer back.
#pragma once

#include <memory>

#include "chief/loop/executor.h"
#include "chief/service/worker_calls.h"

namespace grpc {
class Service;
}

namespace lockstep::chief {

// Both outlive the service.
std::unique_ptr<grpc::Service> MakeChiefService(WorkerCalls* calls, Executor* executor);

}  // namespace lockstep::chief
