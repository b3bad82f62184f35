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

#include "absl/strings/numbers.h"
#include "absl/time/time.h"
#include "common/base/clock.h"

namespace lockstep::test {
namespace {

constexpr size_t kPiece = 64 << 10;
constexpr int kTickMs = 5;

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
  // `latency`. False: it is over.
  bool Pass(const std::atomic<bool> (&stops)[kNumDirections], size_t most, absl::Duration now,
            absl::Duration latency, std::atomic<int64_t>* num_bytes) {
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
};

FaultProxy::FaultProxy(const std::string& from, const std::string& to)
    : listening_(Listen(from)), to_(to), thread_([this] { Run(); }) {}

FaultProxy::~FaultProxy() {
  ends_.store(true);
  thread_.join();
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
  num_connections_.fetch_add(1);
  connections_.push_back(std::make_unique<Connection>(std::move(caller), std::move(called)));
}

absl::Duration FaultProxy::NextLatency() {
  const int64_t jitter = jitter_ms_.load();
  const int64_t least = latency_ms_.load() - jitter;
  return absl::Milliseconds(least + static_cast<int64_t>(random_() % (2 * jitter + 1)));
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
      return !connection->Pass(stops_, most, now, NextLatency(), &num_bytes_);
    });
  }
}

}  // namespace lockstep::test
