// Checks the callers of methods that do not do it themselves: those of gRPC's own services, and
// unknown ones.
#pragma once

#include <grpcpp/server_builder.h>

#include <string>

#include "absl/container/flat_hash_set.h"
#include "common/rpc/caller_check.h"

namespace lockstep::rpc {

using PathSet = absl::flat_hash_set<std::string>;

// Calls of methods that are not in `checked` end with the status of `callers`, which outlives the
// server, before their handler can answer. Its handler may see the request, and that the call is
// cancelled.
void GuardOtherMethods(const CallerCheck* callers, PathSet checked, grpc::ServerBuilder* builder);

}  // namespace lockstep::rpc
