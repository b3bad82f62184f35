#include "common/shm/packet.h"

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "common/base/clock.h"

namespace lockstep::shm {
namespace {

constexpr size_t kMaxPacket = 1024;

absl::Status SocketFailed(const char* what) {
  return absl::UnavailableError(
      absl::StrCat("handing over shared memory: ", what, ": ", std::strerror(errno)));
}

struct Address {
  sockaddr_un at = {};
  socklen_t size = 0;

  // A name that begins with a NUL is abstract.
  explicit Address(absl::string_view name) {
    at.sun_family = AF_UNIX;
    const size_t length = std::min(name.size(), sizeof at.sun_path - 1);
    std::memcpy(at.sun_path + 1, name.data(), length);
    size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + length);
  }
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&at); }
};

// Room for the one descriptor that a packet may bring. The system rounds it up: two fit.
union Control {
  cmsghdr align;
  char bytes[CMSG_SPACE(sizeof(int))];
};

// All that the system has put into this process's table.
std::vector<FileDescriptor> TakeDescriptors(msghdr* message) {
  std::vector<FileDescriptor> descriptors;
  for (cmsghdr* header = CMSG_FIRSTHDR(message); header != nullptr;
       header = CMSG_NXTHDR(message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    for (size_t at = CMSG_LEN(0); at + sizeof(int) <= header->cmsg_len; at += sizeof(int)) {
      int fd = -1;
      std::memcpy(&fd, reinterpret_cast<const char*>(header) + at, sizeof fd);
      descriptors.emplace_back(fd);
    }
  }
  return descriptors;
}

}  // namespace

absl::StatusOr<FileDescriptor> PacketSocket() {
  FileDescriptor made(socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
  if (!made.valid()) return SocketFailed("socket");
  return made;
}

absl::Status BindTo(const FileDescriptor& socket, absl::string_view name) {
  const Address address(name);
  if (bind(socket.get(), address.get(), address.size) != 0) return SocketFailed("bind");
  if (listen(socket.get(), SOMAXCONN) != 0) return SocketFailed("listen");
  return absl::OkStatus();
}

absl::Status ConnectTo(const FileDescriptor& socket, absl::string_view name) {
  const Address address(name);
  if (connect(socket.get(), address.get(), address.size) != 0) return SocketFailed("connect");
  return absl::OkStatus();
}

absl::Status CheckPeer(const FileDescriptor& socket) {
  ucred peer = {};
  socklen_t size = sizeof peer;
  if (getsockopt(socket.get(), SOL_SOCKET, SO_PEERCRED, &peer, &size) != 0) {
    return SocketFailed("SO_PEERCRED");
  }
  if (peer.uid == geteuid()) return absl::OkStatus();
  return absl::PermissionDeniedError(
      absl::StrCat("handing over shared memory: expected a process of user ", geteuid(),
                   ", got one of user ", peer.uid));
}

absl::Status SendPacket(const FileDescriptor& socket, absl::string_view bytes,
                        const FileDescriptor& descriptor) {
  iovec part{const_cast<char*>(bytes.data()), bytes.size()};
  Control control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  if (descriptor.valid()) {
    message.msg_control = control.bytes;
    message.msg_controllen = sizeof control.bytes;
    cmsghdr* const header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    const int fd = descriptor.get();
    std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
  }
  const ssize_t sent = sendmsg(socket.get(), &message, MSG_NOSIGNAL | MSG_DONTWAIT);
  if (sent != static_cast<ssize_t>(bytes.size())) return SocketFailed("sendmsg");
  return absl::OkStatus();
}

absl::StatusOr<Packet> ReceivePacket(const FileDescriptor& socket) {
  char bytes[kMaxPacket];
  iovec part{bytes, sizeof bytes};
  Control control = {};
  msghdr message = {};
  message.msg_iov = &part;
  message.msg_iovlen = 1;
  message.msg_control = control.bytes;
  message.msg_controllen = sizeof control.bytes;
  const ssize_t received = recvmsg(socket.get(), &message, MSG_CMSG_CLOEXEC | MSG_DONTWAIT);
  if (received < 0) return SocketFailed("recvmsg");
  std::vector<FileDescriptor> descriptors = TakeDescriptors(&message);
  if (received == 0) {
    return absl::UnavailableError("handing over shared memory: the peer has hung up");
  }
  if (descriptors.size() > 1 || (message.msg_flags & (MSG_CTRUNC | MSG_TRUNC)) != 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("handing over shared memory: expected a packet of at most ", kMaxPacket,
                     " bytes and one descriptor, got more, or no descriptor is free here"));
  }
  Packet packet{std::string(bytes, static_cast<size_t>(received)), FileDescriptor()};
  if (!descriptors.empty()) packet.descriptor = std::move(descriptors.front());
  return packet;
}

absl::Status AwaitPacket(const FileDescriptor& socket, absl::Duration patience) {
  const Clock& clock = *Clock::Real();
  const absl::Duration deadline = clock.Monotonic() + patience;
  while (true) {
    const absl::Duration left = std::max(deadline - clock.Monotonic(), absl::ZeroDuration());
    pollfd wanted{socket.get(), POLLIN, 0};
    const int ready = poll(&wanted, 1, static_cast<int>(absl::ToInt64Milliseconds(left)) + 1);
    if (ready > 0) return absl::OkStatus();
    if (ready == 0 && clock.Monotonic() >= deadline) {
      return absl::DeadlineExceededError(
          absl::StrCat("handing over shared memory: the peer said nothing for ",
                       absl::FormatDuration(patience)));
    }
    if (ready < 0 && errno != EINTR) return SocketFailed("poll");
  }
}

}  // namespace lockstep::shm
