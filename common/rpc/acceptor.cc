#include "common/rpc/acceptor.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <utility>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"
#include "common/log/log.h"

namespace lockstep::rpc {
namespace {

// A connection costs about 40 KiB; a job of 1,000 workers needs 2 of them for each.
constexpr rlim_t kMaxDescriptors = 8192;
// For shard files, shared memory and calls of the process itself. A quarter of a small limit.
constexpr rlim_t kReserve = 32;

constexpr int kRetryMilliseconds = 50;
constexpr absl::Duration kFullLogPeriod = absl::Minutes(1);

// Whether accept(2) failed because of the connection rather than of this process.
bool IsOfConnection(int error) {
  switch (error) {
    case EINTR:
    case ECONNABORTED:
    case EPERM:  // a firewall rule
    case ENETDOWN:
    case EPROTO:
    case ENOPROTOOPT:
    case EHOSTDOWN:
    case ENONET:
    case EHOSTUNREACH:
    case EOPNOTSUPP:
    case ENETUNREACH:
    case ETIMEDOUT:
      return true;
    default:
      return false;
  }
}

}  // namespace

int MaxDescriptorsForConnections() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return kMaxDescriptors;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
  getrlimit(RLIMIT_NOFILE, &limit);
  const rlim_t usable = limit.rlim_cur - std::min(kReserve, limit.rlim_cur / 4);
  return static_cast<int>(std::min(kMaxDescriptors, usable));
}

Acceptor::Acceptor(std::vector<FileDescriptor> sockets, Options options)
    : sockets_(std::move(sockets)),
      options_(std::move(options)),
      stop_(eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)),
      thread_([this] { Run(); }) {}

void Acceptor::Stop() {
  if (!thread_.joinable()) return;
  const uint64_t one = 1;
  (void)!write(stop_.get(), &one, sizeof one);
  thread_.join();
  sockets_.clear();
  waiting_.Close();
}

void Acceptor::Run() {
  std::vector<pollfd> ready;
  for (const FileDescriptor& socket : sockets_) ready.push_back({socket.get(), POLLIN, 0});
  ready.push_back({stop_.get(), POLLIN, 0});
  const int period =
      options_.look ? static_cast<int>(absl::ToInt64Milliseconds(options_.period)) : -1;
  while (true) {
    if (poll(ready.data(), ready.size(), period) < 0) continue;  // EINTR
    if (ready.back().revents != 0) return;
    LookIfTime(false);
    for (const pollfd& each : ready) {
      if (each.revents != 0 && !AcceptFrom(each.fd)) WaitForDescriptors();
    }
  }
}

bool Acceptor::AcceptFrom(int socket) {
  while (true) {
    const int connection = accept4(socket, nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (connection < 0) {
      if (IsOfConnection(errno)) continue;
      return errno == EAGAIN;
    }
    if (connection >= options_.max_descriptors) {
      waiting_ = FileDescriptor(connection);
      return false;
    }
    options_.serve(connection);
  }
}

void Acceptor::WaitForDescriptors() {
  const absl::Duration now = Clock::Real()->Monotonic();
  if (now >= next_log_) {
    log::Warning(absl::StrCat(
        "descriptors run out: new connections wait while ", options_.max_descriptors,
        " are open. Remedy: raise the limit (ulimit -n) if the job needs more connections"));
    next_log_ = now + kFullLogPeriod;
  }
  while (!Stopped(kRetryMilliseconds)) {
    // A copy has the lowest free number.
    const int lowest = fcntl(waiting_.valid() ? waiting_.get() : stop_.get(), F_DUPFD_CLOEXEC, 0);
    const bool is_free = lowest >= 0 && lowest < options_.max_descriptors;
    if (is_free && waiting_.valid()) {
      options_.serve(lowest);
    } else if (lowest >= 0) {
      close(lowest);
    }
    if (is_free) {
      waiting_.Close();
      return;
    }
    LookIfTime(true);
  }
}

void Acceptor::LookIfTime(bool is_full) {
  const absl::Duration now = Clock::Real()->Monotonic();
  if (!options_.look || now < next_look_) return;
  options_.look(is_full);
  next_look_ = now + options_.period;
}

bool Acceptor::Stopped(int timeout_milliseconds) const {
  pollfd ready{.fd = stop_.get(), .events = POLLIN, .revents = 0};
  return poll(&ready, 1, timeout_milliseconds) > 0;
}

}  // namespace lockstep::rpc
