// Checks the callers of methods that do not do it themselves: those of gRPC's own services.
#pragma once

#include <grpcpp/server_builder.h>

#include "common/rpc/caller_check.h"

namespace lockstep::rpc {

// Calls of methods whose path begins with "/grpc." end with the status of `callers`, which outlives
// the server, before their handler can answer. Its handler may see the request, and that the call
// is cancelled. All other methods are those of a Service, or UnknownMethods answers them.
void GuardGrpcMethods(const CallerCheck* callers, grpc::ServerBuilder* builder);

}  // namespace lockstep::rpc
