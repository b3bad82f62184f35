#include "tests/bench/peers/tcp_pair.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>

namespace lockstep::bench {
namespace {

using Time = std::chrono::steady_clock;

constexpr size_t kPiece = 1 << 20;  // bytes handed over at once: faster than less or more

void Require(bool well, const char* what) {
  if (well) return;
  std::perror(what);
  std::exit(1);
}

void SetNoDelay(int socket) {
  const int on = 1;
  setsockopt(socket, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
}

bool SendAll(int socket, const char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t sent = send(socket, bytes, std::min(size, kPiece), MSG_NOSIGNAL);
    if (sent <= 0) return false;
    bytes += sent;
    size -= sent;
  }
  return true;
}

bool ReceiveAll(int socket, char* bytes, size_t size) {
  while (size > 0) {
    const ssize_t received = recv(socket, bytes, std::min(size, kPiece), 0);
    if (received <= 0) return false;
    bytes += received;
    size -= received;
  }
  return true;
}

// A byte says that all has arrived; the next one asks for it back. Ends with the connection.
void SendBack(int socket, HugePageVector<char>* buffer) {
  char byte = 0;
  while (ReceiveAll(socket, buffer->data(), buffer->size()) && SendAll(socket, &byte, 1) &&
         ReceiveAll(socket, &byte, 1) && SendAll(socket, buffer->data(), buffer->size())) {
  }
}

double MillisecondsSince(Time::time_point start) {
  return std::chrono::duration<double, std::milli>(Time::now() - start).count();
}

}  // namespace

TcpPair::TcpPair(size_t bytes) : buffer_(bytes) {
  const int listener = socket(AF_INET, SOCK_STREAM, 0);
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  socklen_t size = sizeof address;
  auto* const any_address = reinterpret_cast<sockaddr*>(&address);
  Require(bind(listener, any_address, size) == 0 && listen(listener, 1) == 0 &&
              getsockname(listener, any_address, &size) == 0,
          "listen");
  other_ = fork();
  if (other_ == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    const int connection = accept(listener, nullptr, nullptr);
    SetNoDelay(connection);
    SendBack(connection, &buffer_);
    _exit(0);
  }
  socket_ = socket(AF_INET, SOCK_STREAM, 0);
  Require(connect(socket_, any_address, size) == 0, "connect");
  SetNoDelay(socket_);
  close(listener);
}

TcpPair::~TcpPair() {
  close(socket_);
  waitpid(other_, nullptr, 0);
}

TcpPair::Round TcpPair::Run() {
  Round round;
  char byte = 0;
  Time::time_point start = Time::now();
  Require(SendAll(socket_, buffer_.data(), buffer_.size()) && ReceiveAll(socket_, &byte, 1),
          "send");
  round.there = MillisecondsSince(start);
  start = Time::now();
  Require(SendAll(socket_, &byte, 1) && ReceiveAll(socket_, buffer_.data(), buffer_.size()),
          "receive");
  round.back = MillisecondsSince(start);
  return round;
}

double CpuSeconds() {
  double seconds = 0;
  for (int who : {RUSAGE_SELF, RUSAGE_CHILDREN}) {
    rusage usage = {};
    getrusage(who, &usage);
    for (const timeval& time : {usage.ru_utime, usage.ru_stime}) {
      seconds += static_cast<double>(time.tv_sec) + 1e-6 * static_cast<double>(time.tv_usec);
    }
  }
  return seconds;
}

}  // namespace lockstep::bench
