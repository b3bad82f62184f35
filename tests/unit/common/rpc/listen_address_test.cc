#include "common/rpc/listen_address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"

namespace lockstep::rpc {
namespace {

absl::Status TryListen(const std::string& address) {
  const auto resolved = ResolveAddress(address);
  return resolved.ok() ? Listen(address, *resolved).status() : resolved.status();
}

TEST_CASE("Only addresses of this machine alone are loopback") {
  for (const char* address :
       {"127.0.0.1:1", "127.255.3.9:2222", "localhost:0", "LocalHost:5", "[::1]:7"})
    CHECK(CheckLoopback(address).ok());
  for (const char* address : {"0.0.0.0:1", "[::]:1", "128.0.0.1:1", "10.0.0.1:1", "node1:1",
                              "127.0.0.1.example.com:1", "localhost.example.com:1", ":1", ""}) {
    const absl::Status status = CheckLoopback(address);
    CHECK(absl::IsInvalidArgument(status));
    CHECK(absl::StrContains(status.message(), "--insecure"));
  }
}

TEST_CASE("An address in use, a foreign one and an unknown host are told apart") {
  CHECK(TryListen("127.0.0.1:0").ok());
  CHECK(TryListen("localhost:0").ok());
  CHECK(TryListen("0.0.0.0:0").ok());

  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  REQUIRE(bind(listener, reinterpret_cast<sockaddr*>(&address), size) == 0);
  REQUIRE(listen(listener, 1) == 0);
  getsockname(listener, reinterpret_cast<sockaddr*>(&address), &size);
  const int port = ntohs(address.sin_port);
  CHECK(absl::IsUnavailable(TryListen(absl::StrCat("127.0.0.1:", port))));
  // One of its two addresses is enough to be in the way.
  CHECK(absl::IsUnavailable(TryListen(absl::StrCat("localhost:", port))));
  close(listener);

  CHECK(absl::IsInvalidArgument(TryListen("192.0.2.1:0")));  // set aside for documents
  // It may be known later, as that of a pod that is yet to start.
  const absl::Status unknown = TryListen("no-such-host.invalid:0");
  CHECK(absl::IsUnavailable(unknown));
  CHECK(absl::StrContains(unknown.message(), "host no-such-host.invalid cannot be resolved"));
}

}  // namespace
}  // namespace lockstep::rpc
