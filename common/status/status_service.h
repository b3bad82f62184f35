// StatusService for a process: asks `collect` for its state on every call.
#pragma once

#include <grpcpp/impl/service_type.h>

#include <functional>
#include <memory>

#include "proto/status.pb.h"

namespace lockstep {

// Fills the parts that only the process knows (state, waiting_for, job/shard/worker). Called on
// gRPC's threads.
using CollectStatus = std::function<void(ProcessStatus*)>;

struct ProcessIdentity {
  std::string role;
  uint32_t task = 0;
  uint64_t incarnation = 0;
};

std::unique_ptr<grpc::Service> MakeStatusService(const ProcessIdentity& identity,
                                                 CollectStatus collect);

}  // namespace lockstep
