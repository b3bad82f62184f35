#include "tests/bench/loopback.h"

#include <net/if.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include <cstring>
#include <fstream>

#include "absl/strings/str_cat.h"
#include "common/fs/file_descriptor.h"

namespace lockstep::bench {
namespace {

constexpr char kCongestionControl[] = "/proc/sys/net/ipv4/tcp_congestion_control";
// In every kernel, open to every network namespace, and without pacing.
constexpr char kPlain[] = "reno";

bool StartLoopback() {
  const FileDescriptor socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  ifreq request = {};
  std::strcpy(request.ifr_name, "lo");
  if (ioctl(socket.get(), SIOCGIFFLAGS, &request) != 0) return false;
  request.ifr_flags |= IFF_UP | IFF_RUNNING;
  return ioctl(socket.get(), SIOCSIFFLAGS, &request) == 0;
}

bool EnterOwnNetwork() {
  if (unshare(CLONE_NEWNET) != 0 || !StartLoopback()) return false;
  std::ofstream(kCongestionControl) << kPlain;
  return true;
}

}  // namespace

std::string PrepareLoopback() {
  const bool own = EnterOwnNetwork();
  std::string control = "unknown";
  std::ifstream(kCongestionControl) >> control;
  return absl::StrCat(own ? "a network namespace of its own" : "the system's network",
                      ", TCP congestion control ", control);
}

}  // namespace lockstep::bench
