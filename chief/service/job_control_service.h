// The JobControl service over gRPC: brings an operator's call to the executor's thread, and its
// answer back.
#pragma once

#include <functional>
#include <memory>

#include "chief/loop/executor.h"
#include "chief/service/answer.h"
#include "common/rpc/service.h"
#include "proto/job_control.pb.h"

namespace lockstep::chief {

// `stop` is called on the executor's thread, which outlives the service.
std::unique_ptr<rpc::Service> MakeJobControlService(std::function<void(Answer<StopReply>)> stop,
                                                    Executor* executor);

}  // namespace lockstep::chief
