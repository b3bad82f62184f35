#include "common/rpc/process.h"

#include <malloc.h>

#include <fstream>
#include <random>
#include <string>

#include "common/log/log.h"

namespace lockstep {

Incarnation NewIncarnation() {
  std::random_device entropy;
  uint64_t value = 0;
  while (value == 0) value = uint64_t{entropy()} << 32 | entropy();
  return Incarnation(value);
}

void TuneHeap() {
  mallopt(M_TRIM_THRESHOLD, 1 << 30);
  mallopt(M_MMAP_THRESHOLD, 32 << 20);  // glibc takes no more
  mallopt(M_TOP_PAD, 64 << 20);
}

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
