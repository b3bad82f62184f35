#include "tests/integration/unread_calls.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <catch2/catch.hpp>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace lockstep::test {
namespace {

constexpr char kData = 0, kHeaders = 1, kSettings = 4, kPing = 6;  // types of frames
constexpr char kAck = 1, kEndStream = 1, kEndHeaders = 4;          // flags
constexpr size_t kFrameHeader = 9;
constexpr timeval kPatience = {.tv_sec = 60, .tv_usec = 0};

// The lowest `bytes` bytes, the highest of them first.
std::string Number(uint32_t number, int bytes) {
  std::string text;
  for (int i = bytes - 1; i >= 0; --i) text.push_back(static_cast<char>(number >> (8 * i)));
  return text;
}

std::string Frame(char type, char flags, uint32_t stream, absl::string_view payload) {
  return absl::StrCat(Number(static_cast<uint32_t>(payload.size()), 3), std::string(1, type),
                      std::string(1, flags), Number(stream, 4), payload);
}

// A literal field of HPACK, below 127 bytes each.
std::string Field(absl::string_view name, absl::string_view value) {
  return absl::StrCat(Number(0, 1), Number(static_cast<uint32_t>(name.size()), 1), name,
                      Number(static_cast<uint32_t>(value.size()), 1), value);
}

std::string Settings() {
  constexpr uint32_t kInitialWindowSize = 4;
  return Frame(kSettings, 0, 0, absl::StrCat(Number(kInitialWindowSize, 2), Number(0, 4)));
}

}  // namespace

UnreadCalls::UnreadCalls(const std::string& address)
    : connection_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)),
      headers_(absl::StrCat(Field(":method", "POST"), Field(":scheme", "http"),
                            Field(":path", "/lockstep.ParameterServer/Pull"),
                            Field(":authority", "test"), Field("te", "trailers"),
                            Field("content-type", "application/grpc"))) {
  int port = 0;
  REQUIRE(absl::SimpleAtoi(address.substr(address.rfind(':') + 1), &port));
  sockaddr_in peer{};
  peer.sin_family = AF_INET;
  peer.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  peer.sin_port = htons(static_cast<uint16_t>(port));
  REQUIRE(connect(connection_.get(), reinterpret_cast<sockaddr*>(&peer), sizeof peer) == 0);
  REQUIRE(setsockopt(connection_.get(), SOL_SOCKET, SO_RCVTIMEO, &kPatience, sizeof kPatience) ==
          0);
  Send(absl::StrCat("PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", Settings()));
}

void UnreadCalls::Pull(const PullRequest& request) {
  const std::string body = request.SerializeAsString();
  const std::string message =
      absl::StrCat(Number(0, 1), Number(static_cast<uint32_t>(body.size()), 4), body);
  const uint32_t stream = 1 + 2 * static_cast<uint32_t>(calls_++);
  Send(absl::StrCat(Frame(kHeaders, kEndHeaders, stream, headers_),
                    Frame(kData, kEndStream, stream, message)));
}

UnreadCalls::Answers UnreadCalls::WaitForAnswers() {
  while (answers_.values + answers_.refused < calls_) {
    const std::string header = Receive(kFrameHeader);
    uint32_t size = 0;
    for (int i = 0; i < 3; ++i) size = size << 8 | static_cast<unsigned char>(header[i]);
    const std::string payload = Receive(size);
    const char type = header[3];
    const char flags = header[4];
    if (type == kPing && !(flags & kAck)) Send(Frame(kPing, kAck, 0, payload));
    // A refusal is headers alone.
    if (type == kHeaders) ++(flags & kEndStream ? answers_.refused : answers_.values);
  }
  return answers_;
}

std::string UnreadCalls::Receive(size_t size) {
  std::string bytes(size, '\0');
  REQUIRE(recv(connection_.get(), bytes.data(), size, MSG_WAITALL) == static_cast<ssize_t>(size));
  return bytes;
}

void UnreadCalls::Send(absl::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t sent = send(connection_.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL);
    REQUIRE(sent > 0);
    bytes.remove_prefix(static_cast<size_t>(sent));
  }
}

}  // namespace lockstep::test
