// How a worker asks a ps whether it can be reached.
#pragma once

#include <memory>

#include "absl/time/time.h"
#include "common/contact/peer_contact.h"
#include "common/transport/grpc/peer.h"
#include "proto/ps.pb.h"

namespace lockstep {

// Over a connection of its own: on a slow link a ping would wait behind tensors. `lease`: the
// silence of this worker that the ps logs.
std::unique_ptr<PeerPing> MakePsPing(const ClientOptions& options, const WorkerIdentity& worker,
                                     absl::Duration lease);

}  // namespace lockstep
