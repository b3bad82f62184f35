// The Chief service over gRPC: brings each call to the executor's thread, and its answer back.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "chief/loop/executor.h"
#include "chief/service/worker_calls.h"
#include "common/base/ids.h"
#include "common/rpc/service.h"

namespace lockstep::chief {

// On the executor's thread: where a call of this process goes. An error is its answer, of a chief
// that does not command.
using FindWorkerCalls =
    std::function<absl::StatusOr<WorkerCalls*>(WorkerIndex worker, Incarnation incarnation)>;

// The executor outlives the service.
std::unique_ptr<rpc::Service> MakeChiefService(FindWorkerCalls calls, Executor* executor);

}  // namespace lockstep::chief
