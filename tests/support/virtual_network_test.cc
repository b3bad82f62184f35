#include "tests/support/virtual_network.h"

#include <catch2/catch.hpp>
#include <string>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

// A connection is refused after milliseconds, or, if a packet is dropped, not before this.
constexpr absl::Duration kSilence = absl::Milliseconds(400);
constexpr absl::Duration kPatience = absl::Seconds(20);

std::vector<std::string> ConnectTo(const std::string& address) {
  return {"/bin/bash", "-c", absl::StrCat("exec 3<>/dev/tcp/", address, "/9")};
}

// No process listens at the port: a host that can be reached refuses the connection.
bool Reaches(const VirtualNetwork& network, int from, const std::string& to) {
  const Ended ended = RunToEnd(network.CommandOn(from, ConnectTo(to)), kPatience);
  return absl::StrContains(ended.output, "Connection refused");
}

// Nobody says that a connection cannot be made.
bool IsSilent(const VirtualNetwork& network, int from, const std::string& to) {
  const Ended ended = RunToEnd(network.CommandOn(from, ConnectTo(to)), kSilence);
  return ended.exit_code == -1 && ended.output.empty();
}

// One case alone: the network is that of the process.
TEST_CASE("hosts reach each other, but where packets are dropped, and that is silent") {
  const absl::Status entered = VirtualNetwork::Enter();
  INFO(entered.ToString());
  REQUIRE(entered.ok());
  VirtualNetwork network(3);
  const std::string own = VirtualNetwork::OwnAddress();
  const auto address = [](int host) { return VirtualNetwork::AddressOf(host); };
  CHECK(Reaches(network, 0, address(1)));
  CHECK(Reaches(network, 1, own));

  // A host whose answers are lost is silent, too, so the third one shows what is left.
  network.SetBlocked(0, 1, true);
  CHECK(IsSilent(network, 0, address(1)));
  CHECK(Reaches(network, 0, address(2)));
  CHECK(Reaches(network, 2, address(1)));
  network.SetBlocked(0, 1, false);
  CHECK(Reaches(network, 0, address(1)));

  network.SetLink(1, VirtualNetwork::Link::kDown);
  CHECK(IsSilent(network, 0, address(1)));
  CHECK(IsSilent(network, 1, address(0)));
  CHECK(IsSilent(network, 1, own));
  CHECK(Reaches(network, 0, address(2)));
  CHECK(Reaches(network, 1, address(1)));
  network.SetLink(1, VirtualNetwork::Link::kFast);
  CHECK(Reaches(network, 0, address(1)));
  CHECK(Reaches(network, 1, address(0)));

  network.SetLink(1, VirtualNetwork::Link::kOneMbit);
  CHECK(Reaches(network, 0, address(1)));
}

}  // namespace
}  // namespace lockstep::test
