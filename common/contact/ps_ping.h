// Makes the pings by which a task asks a ps whether it can be reached.
#pragma once

#include <memory>

#include "common/contact/peer_contact.h"
#include "common/contact/ps_contacts.h"
#include "common/transport/grpc/peer.h"
#include "proto/ps.pb.h"

namespace lockstep {

// Over a connection of its own: on a slow link a ping would wait behind tensors.
std::unique_ptr<PeerPing> MakePsPing(const ClientOptions& options, PingRequest from_worker);
std::unique_ptr<PeerPing> MakePsPing(const ClientOptions& options, ServerPingRequest from_server);

// The same for each ps of PsContacts, which gives `options` their name and address.
PsContacts::MakePing PsPings(ClientOptions options, PingRequest from_worker);
PsContacts::MakePing PsPings(ClientOptions options, ServerPingRequest from_server);

}  // namespace lockstep
