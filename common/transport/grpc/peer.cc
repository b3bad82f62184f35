#include "common/transport/grpc/peer.h"

#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "common/base/annotate.h"
#include "common/base/lost_variables.h"

namespace lockstep {
namespace {

// gRPC puts its attempts to connect before the reason.
absl::string_view Reason(absl::string_view message) {
  constexpr absl::string_view kConnectPrefix = "Failed to connect to remote host: ";
  const size_t prefix = message.rfind(kConnectPrefix);
  return prefix == absl::string_view::npos ? message
                                           : message.substr(prefix + kConnectPrefix.size());
}

// Where gRPC could not look up the peer's name: which name that is, why, and what to do. Otherwise
// empty. The name service's own words come last.
std::string LookupFailure(const ClientOptions& peer, absl::string_view message) {
  if (!absl::StrContains(message, "DNS resolution failed for ")) return "";
  const absl::string_view address = peer.address;
  constexpr absl::string_view kSeparator = ": ";
  const size_t last = message.rfind(kSeparator);
  if (last != absl::string_view::npos) message.remove_prefix(last + kSeparator.size());
  return absl::StrCat("the name ", address.substr(0, address.rfind(':')),
                      " does not resolve: ", message,
                      ". Remedy: correct the address, or the name service");
}

// What to do where two processes do not agree on TLS: gRPC says only how the connection ended.
absl::string_view TlsRemedy(absl::string_view message) {
  if (absl::StrContains(message, "certificate verify failed")) {
    return ". Remedy: --tls_ca with the authority that signed the certificates of the job";
  }
  if (absl::StrContains(message, "wrong version number")) {
    return ". Remedy: --tls_cert and --tls_ca for that process, which has no TLS";
  }
  if (absl::StrContains(message, "failed to connect") &&
      absl::EndsWith(message, ": Socket closed")) {
    return ". Remedy: if that process has TLS: --tls_ca, and a --tls_cert that it trusts";
  }
  return "";
}

// gRPC's own refusal, here or there: its code is that of a ps without room, which has room later.
bool IsTooLarge(const absl::Status& status) {
  return absl::StrContains(status.message(), "message larger than max (");
}

}  // namespace

std::string NameOf(const ClientOptions& peer) {
  return absl::StrCat(peer.name, " (", peer.address, ")");
}

absl::Status NamePeer(const ClientOptions& peer, absl::string_view method, absl::Duration deadline,
                      const absl::Status& status) {
  const std::string who = NameOf(peer);
  if (IsNoVariables(status)) return LostVariablesError(who);
  const absl::string_view call = method.substr(method.rfind('/') + 1);
  switch (status.code()) {
    case absl::StatusCode::kUnavailable: {
      const std::string lookup = LookupFailure(peer, status.message());
      return absl::UnavailableError(absl::StrCat(
          who, " is not available: ", lookup.empty() ? Reason(status.message()) : lookup,
          TlsRemedy(status.message())));
    }
    case absl::StatusCode::kDeadlineExceeded:
      return absl::DeadlineExceededError(
          absl::StrCat(who, " did not answer ", call, " within ", absl::FormatDuration(deadline)));
    case absl::StatusCode::kResourceExhausted:
      if (!IsTooLarge(status)) return Annotate(status, who);
      return absl::InvalidArgumentError(
          absl::StrCat(who, ": ", call, ": ", status.message(),
                       " bytes. Remedy: fewer variables, or shorter rows of tables"));
    case absl::StatusCode::kUnimplemented:
      return absl::UnimplementedError(
          absl::StrCat(who, " does not serve ", call, ": another process listens at this address"));
    default:
      return Annotate(status, who);
  }
}

absl::Status BadReply(const ClientOptions& peer, const absl::Status& status) {
  return absl::InternalError(absl::StrCat("reply of ", NameOf(peer), ": ", status.message()));
}

absl::Status CallsCancelled(const ClientOptions& peer) {
  return absl::CancelledError(absl::StrCat("calls to ", peer.name, " were cancelled"));
}

}  // namespace lockstep
