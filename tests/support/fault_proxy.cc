#include "tests/support/fault_proxy.h"

#include <arpa/inet.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace lockstep::test {
namespace {

constexpr size_t kPiece = 64 << 10;
constexpr int kTickMs = 5;
constexpr size_t kLeastFlippedFrame = 4 << 10;

sockaddr_in AddressOf(const std::string& text) {
  const size_t colon = text.rfind(':');
  int port = 0;
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  if (!absl::SimpleAtoi(text.substr(colon + 1), &port) ||
      ::inet_pton(AF_INET, text.substr(0, colon).c_str(), &address.sin_addr) != 1) {
    std::abort();
  }
  address.sin_port = htons(static_cast<uint16_t>(port));
  return address;
}

FileDescriptor Listen(const std::string& on) {
  FileDescriptor listening(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  const sockaddr_in address = AddressOf(on);
  if (::bind(listening.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0 ||
      ::listen(listening.get(), SOMAXCONN) != 0) {
    std::abort();
  }
  return listening;
}

void Reset(const FileDescriptor& socket) {
  const linger at_once = {.l_onoff = 1, .l_linger = 0};
  ::setsockopt(socket.get(), SOL_SOCKET, SO_LINGER, &at_once, sizeof at_once);
}

}  // namespace

class FaultProxy::Connection {
 public:
  Connection(FileDescriptor caller, FileDescriptor called)
      : sockets_{std::move(caller), std::move(called)} {
    for (const FileDescriptor& socket : sockets_) {
      const int on = 1;
      ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    }
  }

  // What to wait for at the caller's socket (0) and the called one's (1).
  pollfd Wanted(int socket, bool stops_reading) const {
    int16_t events = 0;
    if (!stops_reading && pipes_[socket].size == 0) events |= POLLIN;
    if (pipes_[1 - socket].size > 0) events |= POLLOUT;
    return {sockets_[socket].get(), events, 0};
  }

  // Passes on, in both directions, at most so many bytes in each; what is read now, after
  // `latency`, and first changed by `change`. False: it is over.
  bool Pass(const std::atomic<bool> (&stops)[kNumDirections], size_t most, absl::Duration now,
            absl::Duration latency, absl::FunctionRef<void(std::span<char>, Http2Frames*)> change,
            std::atomic<int64_t>* num_bytes) {
    for (int from = 0; from < kNumDirections; ++from) {
      if (stops[from].load()) continue;
      Pipe& pipe = pipes_[from];
      if (pipe.size == 0) {
        const size_t room = std::min(most, pipe.bytes.size());
        const ssize_t got =
            room == 0 ? 0 : ::recv(sockets_[from].get(), pipe.bytes.data(), room, 0);
        if (room > 0 && got == 0) return false;
        if (got < 0 && errno != EAGAIN) return false;
        pipe.size = got > 0 ? static_cast<size_t>(got) : 0;
        pipe.sent = 0;
        change({pipe.bytes.data(), pipe.size}, &frames_[from]);
        pipe.due = now + latency;
      }
      if (pipe.size == 0 || now < pipe.due) continue;
      const ssize_t put = ::send(sockets_[1 - from].get(), pipe.bytes.data() + pipe.sent,
                                 pipe.size - pipe.sent, MSG_NOSIGNAL);
      if (put < 0 && errno != EAGAIN && errno != ENOTCONN) return false;
      if (put > 0) {
        pipe.sent += static_cast<size_t>(put);
        num_bytes->fetch_add(put);
      }
      if (pipe.sent == pipe.size) pipe.size = 0;
    }
    return true;
  }

  void Cut() {
    for (const FileDescriptor& socket : sockets_) Reset(socket);
  }

 private:
  struct Pipe {
    std::array<char, kPiece> bytes;
    size_t size = 0;
    size_t sent = 0;
    absl::Duration due;  // not sent before
  };
  std::array<FileDescriptor, 2> sockets_;
  std::array<Pipe, 2> pipes_;  // by the socket that they are read from
  std::array<Http2Frames, 2> frames_ = {Http2Frames(true), Http2Frames(false)};
};

FaultProxy::FaultProxy(const std::string& from, const std::string& to)
    : listening_(Listen(from)), to_(to), thread_([this] { Run(); }) {}

FaultProxy::~FaultProxy() {
  ends_.store(true);
  thread_.join();
}

std::string FaultProxy::address() const {
  sockaddr_in address = {};
  socklen_t size = sizeof address;
  if (::getsockname(listening_.get(), reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    std::abort();
  }
  return absl::StrCat("127.0.0.1:", ntohs(address.sin_port));
}

void FaultProxy::Accept() {
  FileDescriptor caller(
      ::accept4(listening_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
  if (!caller.valid()) return;
  FileDescriptor called(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  const sockaddr_in address = AddressOf(to_);
  // On loopback it is refused at once or made at once.
  if (::connect(called.get(), reinterpret_cast<const sockaddr*>(&address), sizeof address) != 0) {
    return Reset(caller);
  }
  ::fcntl(called.get(), F_SETFL, O_NONBLOCK);
  connections_.push_back(std::make_unique<Connection>(std::move(caller), std::move(called)));
}

absl::Duration FaultProxy::NextLatency() {
  const int64_t jitter = jitter_ms_.load();
  const int64_t least = latency_ms_.load() - jitter;
  return absl::Milliseconds(least + static_cast<int64_t>(random_() % (2 * jitter + 1)));
}

void FaultProxy::FlipIn(std::span<char> bytes, Http2Frames* frames) {
  const int64_t between = bytes_between_flips_.load();
  for (const Http2Frames::Data& data : frames->Read(bytes)) {
    if (data.frame_bytes < kLeastFlippedFrame) continue;
    unflipped_bytes_ += static_cast<int64_t>(data.size);
    // The middle of a frame is neither gRPC's nor protobuf's.
    const size_t middle = data.frame_bytes / 2;
    if (middle < data.offset || middle >= data.offset + data.size) continue;
    if (between == 0 || unflipped_bytes_ < between) continue;
    bytes[data.begin + middle - data.offset] ^= 1;
    unflipped_bytes_ = 0;
    num_flips_.fetch_add(1);
  }
}

void FaultProxy::Run() {
  absl::Duration last = Clock::Real()->Monotonic();
  while (!ends_.load()) {
    if (cut_.exchange(false)) {
      for (const auto& connection : connections_) connection->Cut();
      connections_.clear();
    }
    std::vector<pollfd> wanted = {{listening_.get(), POLLIN, 0}};
    const int64_t rate = rate_.load();
    for (const auto& connection : connections_) {
      if (rate > 0 || latency_ms_.load() > 0) break;  // by the clock
      for (const int socket : {0, 1}) {
        wanted.push_back(connection->Wanted(socket, stops_[socket].load()));
      }
    }
    ::poll(wanted.data(), wanted.size(), kTickMs);
    if (wanted[0].revents != 0) Accept();
    const absl::Duration now = Clock::Real()->Monotonic();
    const auto most =
        rate == 0
            ? kPiece
            : static_cast<size_t>(absl::ToDoubleSeconds(now - last) * static_cast<double>(rate));
    if (most == 0) continue;
    last = now;
    std::erase_if(connections_, [&](const auto& connection) {
      return !connection->Pass(
          stops_, most, now, NextLatency(),
          [this](std::span<char> bytes, Http2Frames* frames) { FlipIn(bytes, frames); },
          &num_bytes_);
    });
  }
}

}  // namespace lockstep::test
