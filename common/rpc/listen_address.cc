#include "common/rpc/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>

#include <cerrno>
#include <cstring>
#include <memory>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "common/rpc/limits.h"

namespace lockstep::rpc {
namespace {

struct HostPort {
  std::string host;  // without brackets
  std::string port;
};

HostPort SplitAddress(absl::string_view address) {
  const size_t colon = address.rfind(':');
  if (colon == absl::string_view::npos) return {std::string(address), ""};
  absl::string_view host = address.substr(0, colon);
  if (absl::ConsumePrefix(&host, "[")) absl::ConsumeSuffix(&host, "]");
  return {std::string(host), std::string(address.substr(colon + 1))};
}

void SetPort(SocketAddress* address, int port) {
  if (address->storage.ss_family == AF_INET6) {
    reinterpret_cast<sockaddr_in6*>(&address->storage)->sin6_port = htons(port);
  } else {
    reinterpret_cast<sockaddr_in*>(&address->storage)->sin_port = htons(port);
  }
}

int PortOf(const SocketAddress& address) {
  return ntohs(address.storage.ss_family == AF_INET6
                   ? reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_port
                   : reinterpret_cast<const sockaddr_in*>(&address.storage)->sin_port);
}

bool IsWildcardV6(const SocketAddress& address) {
  return address.storage.ss_family == AF_INET6 &&
         IN6_IS_ADDR_UNSPECIFIED(
             &reinterpret_cast<const sockaddr_in6*>(&address.storage)->sin6_addr);
}

// What accepted connections inherit: replies leave at once, and a peer that stops acknowledging is
// noticed when it would miss a keepalive ping.
void SetConnectionOptions(int fd) {
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  const unsigned milliseconds = absl::ToInt64Milliseconds(kKeepaliveTimeout);
  setsockopt(fd, IPPROTO_TCP, TCP_USER_TIMEOUT, &milliseconds, sizeof milliseconds);
}

// 0, or the errno of the call that failed. Without SO_REUSEPORT: with it, a second process on the
// port would start, and each would get half of the connections.
int ListenOn(const SocketAddress& address, FileDescriptor* socket_out) {
  FileDescriptor fd(
      socket(address.storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!fd.valid()) return errno;
  const int on = 1;
  setsockopt(fd.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.storage.ss_family == AF_INET6) {
    const int only_v6 = IsWildcardV6(address) ? 0 : 1;
    setsockopt(fd.get(), IPPROTO_IPV6, IPV6_V6ONLY, &only_v6, sizeof only_v6);
  }
  SetConnectionOptions(fd.get());
  if (bind(fd.get(), reinterpret_cast<const sockaddr*>(&address.storage), address.size) != 0)
    return errno;
  if (listen(fd.get(), SOMAXCONN) != 0) return errno;
  *socket_out = std::move(fd);
  return 0;
}

// 0 when it cannot be told.
int LocalPort(int fd) {
  SocketAddress local{.storage = {}, .size = sizeof local.storage};
  if (getsockname(fd, reinterpret_cast<sockaddr*>(&local.storage), &local.size) != 0) return 0;
  return PortOf(local);
}

absl::Status Explain(const std::string& address, int error) {
  switch (error) {
    case EADDRINUSE:
      return absl::UnavailableError(absl::StrCat("address ", address, " is in use"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(absl::StrCat(
          "address ", address, ": this port needs privileges. Remedy: use one from 1024"));
    case EADDRNOTAVAIL:
      return absl::InvalidArgumentError(absl::StrCat(
          "address ", address,
          " is not one of this machine. Remedy: correct the cluster spec, or say where to listen: "
          "--listen=0.0.0.0:PORT"));
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("address ", address, " cannot be listened on: ", std::strerror(error)));
  }
}

}  // namespace

absl::Status CheckLoopback(const std::string& address) {
  const std::string host = absl::AsciiStrToLower(SplitAddress(address).host);
  in_addr v4;
  in6_addr v6;
  if (host == "localhost") return absl::OkStatus();
  if (inet_pton(AF_INET, host.c_str(), &v4) == 1 && ntohl(v4.s_addr) >> 24 == 127)
    return absl::OkStatus();
  if (inet_pton(AF_INET6, host.c_str(), &v6) == 1 && IN6_IS_ADDR_LOOPBACK(&v6))
    return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      "address ", address,
      " can be reached from other machines, and the connections are neither encrypted nor "
      "authenticated. Remedy: give --tls_cert, --tls_key and --tls_ca (./lockstep certificates "
      "makes them); or --insecure if the network is trusted; or use 127.0.0.1"));
}

absl::StatusOr<std::vector<SocketAddress>> ResolveAddress(const std::string& address) {
  const HostPort parts = SplitAddress(address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* resolved = nullptr;
  if (const int error = getaddrinfo(parts.host.c_str(), parts.port.c_str(), &hints, &resolved)) {
    return absl::UnavailableError(absl::StrCat("address ", address, ": host ", parts.host,
                                               " cannot be resolved: ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(resolved, freeaddrinfo);
  std::vector<SocketAddress> found;
  for (const addrinfo* each = resolved; each != nullptr; each = each->ai_next) {
    SocketAddress& next = found.emplace_back();
    std::memcpy(&next.storage, each->ai_addr, each->ai_addrlen);
    next.size = each->ai_addrlen;
  }
  return found;
}

absl::StatusOr<ListeningSockets> Listen(const std::string& address,
                                        absl::Span<const SocketAddress> resolved) {
  // "localhost" is two addresses, and a machine may lack one of them: one that works is enough, one
  // in use is not.
  ListeningSockets listening;
  int failure = 0;
  for (SocketAddress each : resolved) {
    if (listening.port != 0) SetPort(&each, listening.port);  // the one that the first has picked
    FileDescriptor socket;
    const int error = ListenOn(each, &socket);
    if (error == EADDRINUSE) return Explain(address, error);
    if (failure == 0) failure = error;
    if (error != 0) continue;
    listening.port = LocalPort(socket.get());
    listening.sockets.push_back(std::move(socket));
  }
  if (listening.sockets.empty()) return Explain(address, failure);
  return listening;
}

}  // namespace lockstep::rpc
