#include "common/rpc/extra_messages.h"

#include <catch2/catch.hpp>

#include "common/rpc/peer_name.h"

namespace lockstep::rpc {
namespace {

using Counts = ExtraMessages::Counts;

TEST_CASE("A peer has one name however it is written") {
  const std::string local = PeerName(absl::string_view("\x7f\x00\x00\x01", 4), 80);
  CHECK(PeerName("ipv4:127.0.0.1:80") == local);
  CHECK(PeerName("ipv6:%5B::ffff:127.0.0.1%5D:80") == local);
  const std::string v6 = PeerName(std::string(15, '\0') + "\x01", 80);
  CHECK(PeerName("ipv6:[::1]:80") == v6);
  CHECK(PeerName("ipv6:%5B::1%5D:80") == v6);
  CHECK(v6 != local);
  CHECK(PeerName("ipv6:%5Bfe80::1%25eth0%5D:80") == PeerName("ipv6:%5Bfe80::1%5D:80"));
}

TEST_CASE("What is not an address and a port has no name") {
  for (const char* const uri : {"", "unix:/run/socket", "ipv4:127.0.0.1", "ipv4:host:80",
                                "ipv6:127.0.0.1:80", "ipv4:127.0.0.1:port"}) {
    CAPTURE(uri);
    CHECK(PeerName(uri).empty());
  }
}

TEST_CASE("Of a connection that has ended only what it had is forgotten") {
  ExtraMessages extra;
  const std::string a = "ipv4:10.0.0.1:1", b = "ipv4:10.0.0.1:2";
  for (const std::string& peer : {a, a, b}) extra.Add(peer);
  const Counts before = extra.counts();
  CHECK(before == Counts{{PeerName(a), 2}, {PeerName(b), 1}});
  extra.Add(a);
  extra.Forget(before);
  CHECK(extra.counts() == Counts{{PeerName(a), 1}});
}

}  // namespace
}  // namespace lockstep::rpc
