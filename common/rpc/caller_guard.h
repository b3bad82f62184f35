// What the methods of gRPC's own services do not do themselves: their callers are checked, and
// their messages counted.
#pragma once

#include <grpcpp/server_builder.h>

#include "common/rpc/caller_check.h"
#include "common/rpc/extra_messages.h"

namespace lockstep::rpc {

// Calls of methods whose path begins with "/grpc." end with the status of `callers` (null:
// everybody may call) before their handler can answer. Its handler may see the request, and that
// the call is cancelled. All other methods are those of a Service, which have one message from the
// client, or UnknownMethods answers them. `extra` gets every message of these calls beyond the
// first one, and the end of each stream: what cannot be parsed looks the same. Both outlive the
// server.
void GuardGrpcMethods(const CallerCheck* callers, ExtraMessages* extra,
                      grpc::ServerBuilder* builder);

}  // namespace lockstep::rpc
