#include "tests/chaos/stranger_connections.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/time.h>

#include <utility>

#include "absl/strings/numbers.h"

namespace lockstep::test {
namespace {

constexpr suseconds_t kPatienceMicroseconds = 300'000;

bool ParseAddress(const std::string& address, sockaddr_in* parsed) {
  const size_t colon = address.rfind(':');
  int port = 0;
  if (colon == std::string::npos || !absl::SimpleAtoi(address.substr(colon + 1), &port)) {
    return false;
  }
  parsed->sin_family = AF_INET;
  parsed->sin_port = htons(port);
  return inet_pton(AF_INET, address.substr(0, colon).c_str(), &parsed->sin_addr) == 1;
}

}  // namespace

FileDescriptor ConnectTo(const std::string& address) {
  sockaddr_in peer{};
  if (!ParseAddress(address, &peer)) return FileDescriptor();
  FileDescriptor connection(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const timeval patience = {.tv_sec = 0, .tv_usec = kPatienceMicroseconds};
  const bool is_connected =
      connection.valid() &&
      setsockopt(connection.get(), SOL_SOCKET, SO_SNDTIMEO, &patience, sizeof patience) == 0 &&
      connect(connection.get(), reinterpret_cast<sockaddr*>(&peer), sizeof peer) == 0;
  return is_connected ? std::move(connection) : FileDescriptor();
}

std::vector<FileDescriptor> ConnectTo(const std::string& address, int count) {
  std::vector<FileDescriptor> connections;
  for (int i = 0; i < count; ++i) {
    FileDescriptor connection = ConnectTo(address);
    if (!connection.valid()) break;
    connections.push_back(std::move(connection));
  }
  return connections;
}

void SendTo(const FileDescriptor& connection, absl::string_view bytes) {
  (void)!send(connection.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
}

}  // namespace lockstep::test
