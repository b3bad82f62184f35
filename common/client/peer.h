// The task at the other end of a client's channel, as errors name it.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"
#include "common/client/ps_client.h"

namespace lockstep {

// The status of a failed call with the peer named: "ps 1 (host:port) is not reachable: ...".
// `method` is a path, "/lockstep.ParameterServer/Push". A ps that has lost its variables gives
// LostVariablesError for every method.
absl::Status NamePeer(const ClientOptions& peer, absl::string_view method, absl::Duration deadline,
                      const absl::Status& status);

// What comes from a task and makes no sense is not the caller's mistake: INTERNAL.
absl::Status BadReply(const ClientOptions& peer, const absl::Status& status);

// For calls that a cancelled client refuses.
absl::Status CallsCancelled(const ClientOptions& peer);

}  // namespace lockstep
