// The Chief service over gRPC: brings each call to the executor's thread, and its answer back.
#pragma once

#include <functional>
#include <memory>

#include "chief/loop/executor.h"
#include "chief/service/worker_calls.h"
#include "common/rpc/service.h"

namespace lockstep::chief {

// `calls` is asked for on the executor's thread, which outlives the service.
std::unique_ptr<rpc::Service> MakeChiefService(std::function<WorkerCalls*()> calls,
                                               Executor* executor);

}  // namespace lockstep::chief
