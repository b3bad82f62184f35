#include "deploy/cli/ports.h"

#include <netinet/in.h>
#include <sys/socket.h>

#include <random>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "common/fs/file_descriptor.h"

namespace lockstep::deploy {
namespace {

// Linux gives 32768 and above to outgoing connections; well-known services sit low.
constexpr int kFirst = 20000;
constexpr int kLast = 32767;

bool BindsTo(int port) {
  const FileDescriptor socket_fd(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0));
  sockaddr_in address = {};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  return bind(socket_fd.get(), reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
}

}  // namespace

absl::StatusOr<std::vector<std::string>> FreeLoopbackAddresses(int count) {
  constexpr int kPorts = kLast - kFirst + 1;
  // A random start: launchers that run at the same time seldom meet.
  const int start = std::random_device()() % kPorts;
  std::vector<std::string> addresses;
  for (int tried = 0; tried < kPorts && addresses.size() < count; ++tried) {
    const int port = kFirst + (start + tried) % kPorts;
    if (BindsTo(port)) addresses.push_back(absl::StrCat("127.0.0.1:", port));
  }
  if (addresses.size() < count) {
    return absl::UnavailableError(absl::StrCat("expected ", count, " free ports between ", kFirst,
                                               " and ", kLast, ", got ", addresses.size(),
                                               ". Remedy: end other programs that hold them"));
  }
  return addresses;
}

}  // namespace lockstep::deploy
