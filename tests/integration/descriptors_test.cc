// A process whose descriptors run out: connections wait, nothing is lost.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "common/client/status_client.h"
#include "common/fs/file_descriptor.h"
#include "tests/integration/cluster.h"
#include "tests/support/process.h"

namespace lockstep::test {
namespace {

constexpr absl::Duration kWhole = absl::Seconds(60);
constexpr int kFewDescriptors = 64;

std::vector<std::string> WithFewDescriptors(std::vector<std::string> command) {
  command.insert(command.begin(),
                 {"/usr/bin/prlimit", absl::StrCat("--nofile=", kFewDescriptors), "--"});
  return command;
}

// Connections to "127.0.0.1:port" that say nothing.
std::vector<FileDescriptor> Connect(const std::string& address, int count) {
  int port = 0;
  REQUIRE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  peer.sin_port = htons(port);
  std::vector<FileDescriptor> connections;
  for (int i = 0; i < count; ++i) {
    connections.emplace_back(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
    REQUIRE(connect(connections.back().get(), reinterpret_cast<sockaddr*>(&peer), sizeof peer) ==
            0);
  }
  return connections;
}

int Count(const std::string& text, const std::string& word) {
  int count = 0;
  for (size_t at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++count;
  return count;
}

TEST_CASE("a ps that ran out of descriptors accepts connections again within 2 seconds") {
  Cluster cluster(1, 1);
  Process ps(WithFewDescriptors(cluster.Ps(0)));
  REQUIRE(ps.WaitForOutput("listening", absl::Seconds(10)));
  {
    const auto strangers = Connect(cluster.spec().ps[0], 2 * kFewDescriptors);
    REQUIRE(ps.WaitForOutput("descriptors run out", absl::Seconds(10)));
  }
  const absl::Time closed = absl::Now();
  CHECK(FetchStatus(cluster.spec().ps[0], absl::Seconds(5)).ok());
  CHECK(absl::Now() - closed < absl::Seconds(2));
  INFO(ps.Output());
  CHECK(Count(ps.Output(), "descriptors run out") == 1);
}

TEST_CASE("a job finishes while strangers take the descriptors of its ps") {
  Cluster cluster(1, 2);
  Process ps(WithFewDescriptors(cluster.Ps(0)));
  Process first(cluster.Worker(0)), second(cluster.Worker(1));
  Process chief(cluster.Chief(cluster.WriteJob({.max_steps = 300})));
  REQUIRE(chief.WaitForOutput("training", kWhole));
  for (int i = 0; i < 5; ++i) Connect(cluster.spec().ps[0], 100);
  const auto code = chief.Wait(kWhole);
  INFO(chief.Output() << ps.Output() << first.Output());
  CHECK(code == 0);
  CHECK(ps.Wait(absl::Seconds(5)) == 0);
}

}  // namespace
}  // namespace lockstep::test
