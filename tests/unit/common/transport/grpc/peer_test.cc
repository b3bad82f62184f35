// What an error of gRPC becomes in the words of this project.
#include "common/transport/grpc/peer.h"

#include <catch2/catch.hpp>
#include <string>
#include <utility>

namespace lockstep {
namespace {

std::string TextOf(const std::string& failure) {
  const absl::Status named =
      NamePeer({.address = "ps-1.train:2222", .name = "ps 1"}, "/lockstep.PsControl/SetView",
               absl::Seconds(5), absl::UnavailableError(failure));
  CHECK(absl::IsUnavailable(named));
  return std::string(named.message());
}

TEST_CASE("a name that does not resolve is named, with its task and what to do") {
  const auto [told, reason] = GENERATE(
      std::pair("C-ares status is not ARES_SUCCESS qtype=AAAA name=ps-1.train is_balancer=0: "
                "Domain name not found",
                "Domain name not found"),
      std::pair("C-ares status is not ARES_SUCCESS qtype=A name=ps-1.train is_balancer=0: "
                "Could not contact DNS servers",
                "Could not contact DNS servers"),
      std::pair("UNKNOWN: Name or service not known", "Name or service not known"));
  CHECK(TextOf("DNS resolution failed for ps-1.train:2222: " + std::string(told)) ==
        "ps 1 (ps-1.train:2222) is not available: the name ps-1.train does not resolve: " +
            std::string(reason) + ". Remedy: correct the address, or the name service");
}

TEST_CASE("a process that is not there is named with the reason alone") {
  CHECK(TextOf("failed to connect to all addresses; last error: UNKNOWN: ipv4:10.0.0.1:2222: "
               "Failed to connect to remote host: Connection refused") ==
        "ps 1 (ps-1.train:2222) is not available: Connection refused");
}

}  // namespace
}  // namespace lockstep
