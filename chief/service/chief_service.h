// The Chief service over gRPC: brings each call to the executor's thread, and its answer back.
#pragma once

#include <functional>
#include <memory>

#include "absl/status/statusor.h"
#include "chief/loop/executor.h"
#include "chief/service/worker_calls.h"
#include "common/rpc/service.h"

namespace lockstep::chief {

// `calls` is asked for on the executor's thread, which outlives the service. Its error is the
// answer to every call: of a chief that does not command.
std::unique_ptr<rpc::Service> MakeChiefService(std::function<absl::StatusOr<WorkerCalls*>()> calls,
                                               Executor* executor);

}  // namespace lockstep::chief
