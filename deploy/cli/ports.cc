#include "deploy/cli/ports.h"

#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/un.h>

#include <algorithm>
#include <cstddef>
#include <cstring>
#include <optional>
#include <random>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"

namespace lockstep::deploy {
namespace {

// Linux gives 32768 and above to outgoing connections; well-known services sit low.
constexpr int kFirst = 20000;
constexpr int kLast = 32767;
constexpr int kPorts = kLast - kFirst + 1;
// Ports are reserved in blocks, so that a launcher of a thousand processes needs few descriptors.
constexpr int kBlock = 16;
constexpr int kBlocks = kPorts / kBlock;
static_assert(kPorts % kBlock == 0);

bool BindsTo(int port) {
  const FileDescriptor socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

// Takes the block's name in the abstract namespace of Unix sockets. One process has it at a time;
// it is free again when that has ended, however it did. nullopt: another has it.
std::optional<FileDescriptor> ReserveBlock(int first_port) {
  FileDescriptor socket_fd(socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  const std::string name = absl::StrCat("lockstep-ports-", first_port);
  sockaddr_un address = {};
  address.sun_family = AF_UNIX;
  std::memcpy(address.sun_path + 1, name.data(), name.size());
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), size) != 0) return std::nullopt;
  return socket_fd;
}

}  // namespace

absl::StatusOr<PortReservation> PortReservation::Take(int count) {
  // A random start: few blocks are looked at, and a port that was just given back rests.
  return TakeFrom(kFirst + static_cast<int>(std::random_device()() % kPorts), count);
}

absl::StatusOr<PortReservation> PortReservation::TakeFrom(int first_port, int count) {
  const int start = first_port < kFirst || first_port > kLast ? 0 : (first_port - kFirst) / kBlock;
  PortReservation taken;
  const auto enough = [&] { return taken.addresses_.size() >= static_cast<size_t>(count); };
  // What can never be had takes nothing from others meanwhile.
  const int blocks = count > kPorts ? 0 : kBlocks;
  for (int tried = 0; tried < blocks && !enough(); ++tried) {
    const int first = kFirst + (start + tried) % kBlocks * kBlock;
    std::optional<FileDescriptor> block = ReserveBlock(first);
    if (!block) continue;
    taken.blocks_.push_back(*std::move(block));
    for (int port = first; port < first + kBlock && !enough(); ++port) {
      if (BindsTo(port)) taken.addresses_.push_back(absl::StrCat("127.0.0.1:", port));
    }
  }
  if (!enough()) {
    return absl::UnavailableError(absl::StrCat(
        "expected ", count, " free ports between ", kFirst, " and ", kLast, ", got ",
        taken.addresses_.size(),
        ". Remedy: end other programs that hold them, such as other runs of lockstep up"));
  }
  return taken;
}

}  // namespace lockstep::deploy
