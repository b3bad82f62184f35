#include "common/config/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"

namespace lockstep {
namespace {

constexpr size_t kMaxHostLength = 253;  // of a domain name

absl::Status Malformed(absl::string_view text, absl::string_view why) {
  return absl::InvalidArgumentError(
      absl::StrCat("expected \"host:port\", got \"", absl::CHexEscape(text.substr(0, 300)), "\" (",
                   why, "). Remedy: write a host and a port, such as node1:2222"));
}

// Letters, digits, '-', '_' in labels between dots: domain names, Kubernetes and Compose services,
// IPv4 addresses.
bool IsHostName(absl::string_view host) {
  if (host.empty() || host.size() > kMaxHostLength) return false;
  char previous = '.';
  for (char c : host) {
    if (c == '.' ? previous == '.' : !(absl::ascii_isalnum(c) || c == '-' || c == '_')) {
      return false;
    }
    previous = c;
  }
  return true;
}

}  // namespace

std::string Address::ToString() const {
  const bool ipv6 = absl::StrContains(host, ':');
  return absl::StrCat(ipv6 ? "[" : "", host, ipv6 ? "]:" : ":", port);
}

absl::StatusOr<Address> ParseAddress(absl::string_view text) {
  if (text.empty()) return Malformed(text, "none is given");
  const size_t colon = text.rfind(':');
  if (colon == absl::string_view::npos) return Malformed(text, "there is no port");
  absl::string_view host = text.substr(0, colon);
  const absl::string_view port = text.substr(colon + 1);
  Address address;
  if (absl::ConsumePrefix(&host, "[")) {
    in6_addr ipv6;
    if (!absl::ConsumeSuffix(&host, "]") ||
        inet_pton(AF_INET6, std::string(host).c_str(), &ipv6) != 1) {
      return Malformed(text, "what is in brackets is no IPv6 address");
    }
    char shortest[INET6_ADDRSTRLEN];
    inet_ntop(AF_INET6, &ipv6, shortest, sizeof(shortest));
    address.host = shortest;
  } else if (absl::StrContains(host, "://")) {
    return Malformed(text, "nothing like http:// belongs before the host");
  } else if (absl::StrContains(host, ':')) {
    return Malformed(text, "an IPv6 address goes in brackets: [::1]:2222");
  } else if (!IsHostName(host)) {
    return Malformed(text, "that is no host name or address");
  } else {
    address.host = absl::AsciiStrToLower(host);
  }
  bool digits = !port.empty() && port.size() <= 5;
  for (char c : port) digits = digits && absl::ascii_isdigit(c);
  if (!digits || !absl::SimpleAtoi(port, &address.port) || address.port < 1 ||
      address.port > 65535) {
    return Malformed(text, "a port is a number from 1 to 65535");
  }
  return address;
}

}  // namespace lockstep
