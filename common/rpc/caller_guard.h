// GuardGrpcMethods checks the callers of gRPC's own services and counts their messages, which these
// services do not do themselves.
#pragma once

#include <grpcpp/server_builder.h>

#include "common/rpc/caller_check.h"
#include "common/rpc/extra_messages.h"

namespace lockstep::rpc {

// Guards the methods whose path begins with "/grpc.". `callers` (null: every call is allowed) ends
// refused calls with its status before their handler can answer. The handler may see the request
// and the cancellation. All other methods belong to a Service and have one message from the client,
// or UnknownMethods answers them. `extra` gets every message of these calls beyond the first one.
// It also gets the end of each stream, which looks like a message that cannot be parsed. Both
// outlive the server.
void GuardGrpcMethods(const CallerCheck* callers, ExtraMessages* extra,
                      grpc::ServerBuilder* builder);

}  // namespace lockstep::rpc
