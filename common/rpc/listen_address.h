// The address that a process listens on: whether it may, what its name stands for, and the sockets.
#pragma once

#include <sys/socket.h>

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "common/fs/file_descriptor.h"

namespace lockstep::rpc {

struct SocketAddress {
  sockaddr_storage storage;
  socklen_t size;
};

struct ListeningSockets {
  std::vector<FileDescriptor> sockets;  // at least one; not blocking
  int port = 0;                         // the same for all
};

// INVALID_ARGUMENT unless only this machine can reach `address`: 127.0.0.0/8, ::1, localhost.
absl::Status CheckLoopback(const std::string& address);

// All that "host:port" stands for. Asks the name service, so it may block for seconds. UNAVAILABLE:
// the name does not resolve, or not yet.
absl::StatusOr<std::vector<SocketAddress>> ResolveAddress(const std::string& address);

// Listens on every one of `resolved`, which `address` stands for; [::] takes IPv4 too. UNAVAILABLE:
// one of them is in use. INVALID_ARGUMENT: none is an address of this machine. PERMISSION_DENIED: a
// port that needs privileges.
absl::StatusOr<ListeningSockets> Listen(const std::string& address,
                                        absl::Span<const SocketAddress> resolved);

}  // namespace lockstep::rpc
