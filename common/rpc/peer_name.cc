#include "common/rpc/peer_name.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <cstddef>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "absl/strings/strip.h"

namespace lockstep::rpc {
namespace {

template <typename Address>
absl::string_view Bytes(const Address& address) {
  return {reinterpret_cast<const char*>(&address), sizeof address};
}

}  // namespace

std::string PeerName(absl::string_view address, int port) {
  in6_addr v6{};
  if (address.size() == sizeof v6) {
    address.copy(reinterpret_cast<char*>(&v6), sizeof v6);
    if (IN6_IS_ADDR_V4MAPPED(&v6)) address.remove_prefix(12);
  }
  return absl::StrCat(address, ":", port);
}

std::string PeerName(int descriptor) {
  sockaddr_storage storage{};
  socklen_t size = sizeof storage;
  if (getpeername(descriptor, reinterpret_cast<sockaddr*>(&storage), &size) != 0) return "";
  if (storage.ss_family == AF_INET) {
    const auto* v4 = reinterpret_cast<const sockaddr_in*>(&storage);
    return PeerName(Bytes(v4->sin_addr), ntohs(v4->sin_port));
  }
  if (storage.ss_family != AF_INET6) return "";
  const auto* v6 = reinterpret_cast<const sockaddr_in6*>(&storage);
  return PeerName(Bytes(v6->sin6_addr), ntohs(v6->sin6_port));
}

std::string PeerName(absl::string_view uri) {
  const bool is_v4 = absl::ConsumePrefix(&uri, "ipv4:");
  if (!is_v4 && !absl::ConsumePrefix(&uri, "ipv6:")) return "";
  const size_t colon = uri.rfind(':');
  int port = 0;
  if (colon == uri.npos || !absl::SimpleAtoi(uri.substr(colon + 1), &port)) return "";
  std::string host = absl::StrReplaceAll(
      uri.substr(0, colon), {{"%5B", ""}, {"%5D", ""}, {"[", ""}, {"]", ""}, {"%25", "%"}});
  host.resize(std::min(host.size(), host.find('%')));  // the interface of a link-local address
  in_addr v4{};
  if (is_v4) return inet_pton(AF_INET, host.c_str(), &v4) == 1 ? PeerName(Bytes(v4), port) : "";
  in6_addr v6{};
  return inet_pton(AF_INET6, host.c_str(), &v6) == 1 ? PeerName(Bytes(v6), port) : "";
}

}  // namespace lockstep::rpc
