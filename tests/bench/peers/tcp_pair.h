// Two processes with a TCP connection on loopback between them, which do nothing but send and
// receive: what sockets can do at best.
#pragma once

#include <sys/types.h>

#include <cstddef>

#include "tests/bench/peers/huge_pages.h"

namespace lockstep::bench {

// Ends the program when the system refuses.
class TcpPair {
 public:
  // The other process receives `bytes` and sends as many back, again and again.
  explicit TcpPair(size_t bytes);
  ~TcpPair();

  // The milliseconds until all has arrived there, and until all is back.
  struct Round {
    double there = 0;
    double back = 0;
  };
  Round Run();

 private:
  HugePageVector<char> buffer_;
  int socket_ = -1;
  pid_t other_ = 0;
};

// Of this process and of those that it has waited for.
double CpuSeconds();

}  // namespace lockstep::bench
