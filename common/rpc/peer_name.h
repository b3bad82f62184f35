// One name for the other end of a connection, wherever it is read.
#pragma once

#include <string>

#include "absl/strings/string_view.h"

namespace lockstep::rpc {

// The bytes of an address, ":" and a port; those of IPv4 also where IPv6 wraps it.
std::string PeerName(absl::string_view address, int port);
// Of a connected socket; empty where it is none of IPv4 or IPv6.
std::string PeerName(int descriptor);
// As gRPC writes it: "ipv4:127.0.0.1:40312", "ipv6:%5B::1%5D:40312"; empty for others.
std::string PeerName(absl::string_view uri);

}  // namespace lockstep::rpc
