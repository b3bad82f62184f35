// StatusService for a process: asks `collect` for its state on every call.
#pragma once

#include <functional>
#include <memory>
#include <string>

#include "common/base/callback.h"
#include "common/rpc/service.h"
#include "proto/status.pb.h"

namespace lockstep {

// Answers with the parts that only the process knows (state, waiting_for, job/shard/worker), at
// once or later, on any thread. Called on the server's queues, which it must not hold up. The
// service outlives the answer.
using CollectStatus = std::function<void(Callback<ProcessStatus>)>;

struct ProcessIdentity {
  std::string role;
  uint32_t task = 0;
  uint64_t incarnation = 0;
};

std::unique_ptr<rpc::Service> MakeStatusService(const ProcessIdentity& identity,
                                                CollectStatus collect);

}  // namespace lockstep
