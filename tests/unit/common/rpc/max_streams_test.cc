// What a server tells each connection of the calls that it may have at once.
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <catch2/catch.hpp>
#include <map>
#include <string>

#include "absl/cleanup/cleanup.h"
#include "absl/strings/string_view.h"
#include "common/rpc/limits.h"
#include "common/rpc/server.h"

namespace lockstep::rpc {
namespace {

constexpr size_t kFrameHeader = 9;
constexpr size_t kEntry = 6;
constexpr uint32_t kSettings = 4;              // type of a frame
constexpr uint32_t kMaxConcurrentStreams = 3;  // an entry of it

uint32_t Number(absl::string_view bytes) {
  uint32_t number = 0;
  for (const char byte : bytes) number = number << 8 | static_cast<unsigned char>(byte);
  return number;
}

// The settings with which the server at this port of the machine begins a connection.
std::map<uint32_t, uint32_t> SettingsOf(int port) {
  const int connection = socket(AF_INET, SOCK_STREAM, 0);
  const absl::Cleanup close_it = [connection] { close(connection); };
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_port = htons(static_cast<uint16_t>(port));
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  REQUIRE(connect(connection, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0);
  // A client's preface, and its own settings: none.
  const std::string begin = std::string("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n") +
                            std::string("\0\0\0\x04\0\0\0\0\0", kFrameHeader);
  REQUIRE(send(connection, begin.data(), begin.size(), MSG_NOSIGNAL) ==
          static_cast<ssize_t>(begin.size()));
  const auto read = [connection](size_t size) {
    std::string bytes(size, '\0');
    REQUIRE(recv(connection, bytes.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size));
    return bytes;
  };
  const std::string header = read(kFrameHeader);
  REQUIRE(Number(header.substr(3, 1)) == kSettings);
  const std::string entries = read(Number(header.substr(0, 3)));
  std::map<uint32_t, uint32_t> settings;
  for (size_t at = 0; at + kEntry <= entries.size(); at += kEntry) {
    settings[Number(entries.substr(at, 2))] = Number(entries.substr(at + 2, 4));
  }
  return settings;
}

TEST_CASE("A connection may have as many calls at once as a worker of a large shard awaits") {
  const auto server = Server::Start({.address = "127.0.0.1:0", .owner = "ps 0"});
  REQUIRE(server.ok());
  const auto settings = SettingsOf((*server)->port());
  REQUIRE(settings.contains(kMaxConcurrentStreams));
  CHECK(settings.at(kMaxConcurrentStreams) == uint32_t{kMaxStreams});
}

}  // namespace
}  // namespace lockstep::rpc
