#include "common/rpc/listen_address.h"

#include <arpa/inet.h>
#include <netdb.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <memory>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

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

// 0, or the errno of the call that failed.
int BindError(const addrinfo& address) {
  const int fd = socket(address.ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) return errno;
  // As gRPC does; a listener in the way is an error all the same.
  const int on = 1;
  setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  if (address.ai_family == AF_INET6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &on, sizeof on);
  const int error = bind(fd, address.ai_addr, address.ai_addrlen) == 0 ? 0 : errno;
  close(fd);
  return error;
}

absl::Status Explain(const std::string& address, int error) {
  switch (error) {
    case 0:
      return absl::OkStatus();
    case EADDRINUSE:
      return absl::UnavailableError(absl::StrCat("address ", address, " is in use"));
    case EACCES:
    case EPERM:
      return absl::PermissionDeniedError(absl::StrCat(
          "address ", address, ": this port needs privileges. Remedy: use one from 1024"));
    default:
      return absl::InvalidArgumentError(
          absl::StrCat("address ", address, " cannot be listened on: ", std::strerror(error),
                       ". Remedy: use an address of this machine"));
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
      "authenticated. Remedy: give --insecure if the network is trusted, or use 127.0.0.1"));
}

absl::Status TryBind(const std::string& address) {
  const HostPort parts = SplitAddress(address);
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* resolved = nullptr;
  if (const int error = getaddrinfo(parts.host.c_str(), parts.port.c_str(), &hints, &resolved)) {
    return absl::InvalidArgumentError(absl::StrCat("address ", address, ": host ", parts.host,
                                                   " cannot be resolved: ", gai_strerror(error)));
  }
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> owner(resolved, freeaddrinfo);
  // "localhost" is two addresses, and a machine may lack one of them: one that works is enough, one
  // in use is not.
  int failure = 0;
  bool bound = false;
  for (const addrinfo* each = resolved; each != nullptr; each = each->ai_next) {
    const int error = BindError(*each);
    if (error == EADDRINUSE) return Explain(address, error);
    if (error == 0) bound = true;
    if (failure == 0) failure = error;
  }
  return bound ? absl::OkStatus() : Explain(address, failure);
}

}  // namespace lockstep::rpc
