// The task at the other end of a client's channel, and how errors name it.
#pragma once

#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep {

namespace rpc {
class Credentials;
class EventQueue;
}  // namespace rpc

struct ClientOptions {
  std::string address;  // "host:port"
  std::string name;     // "ps 1", for error messages
  // Where callbacks run: of the process's server, or null for one of the client's own. Outlives the
  // client.
  rpc::EventQueue* queue = nullptr;
  std::shared_ptr<const rpc::Credentials> credentials = nullptr;  // null: calls show none
  bool checksums = false;  // of messages with tensors, in both directions: transport.checksums
};

// "ps 1 (host:port)"
std::string NameOf(const ClientOptions& peer);

// The status of a failed call with the peer named: "ps 1 (host:port) is not reachable: ...".
// `method` is a path, "/lockstep.ParameterServer/Push". A ps that has lost its variables gives
// LostVariablesError for every method.
absl::Status NamePeer(const ClientOptions& peer, absl::string_view method, absl::Duration deadline,
                      const absl::Status& status);

// INTERNAL: the reply of the peer cannot be decoded. The caller made no mistake.
absl::Status BadReply(const ClientOptions& peer, const absl::Status& status);

// For calls that a cancelled client refuses.
absl::Status CallsCancelled(const ClientOptions& peer);

}  // namespace lockstep
