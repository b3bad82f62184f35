#include "common/rpc/process.h"

#include <malloc.h>
#include <unistd.h>

#include <fstream>
#include <random>

#include "absl/synchronization/mutex.h"
#include "common/log/log.h"

namespace lockstep {

uint64_t RandomId() {
  std::random_device entropy;
  uint64_t id = 0;
  while (id == 0) id = uint64_t{entropy()} << 32 | entropy();
  return id;
}

Incarnation NewIncarnation() { return Incarnation(RandomId()); }

std::string HostName() {
  char name[256] = {};
  gethostname(name, sizeof name - 1);
  return name;
}

void TuneLocks() { absl::SetMutexDeadlockDetectionMode(absl::OnDeadlockCycle::kIgnore); }

void TuneHeap() {
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // glibc takes no more
  mallopt(M_TOP_PAD, 64 << 20);
  mallopt(M_ARENA_MAX, 2);
}

void TrimHeap() { malloc_trim(0); }

void LogCongestionControl() {
  std::ifstream file("/proc/sys/net/ipv4/tcp_congestion_control");
  std::string name;
  if (file >> name && name == "bbr") {
    log::Info(
        "this machine's TCP congestion control is bbr, which makes connections on one host and in "
        "one rack slower (about half the speed over loopback). Remedy: sysctl -w "
        "net.ipv4.tcp_congestion_control=cubic");
  }
}

}  // namespace lockstep
