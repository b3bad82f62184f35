// Bytes through a bare TCP connection on loopback and back, one way after the other.
//
//   tcp_stream MEBIBYTES ROUNDS    prints milliseconds there, back, there, back, ... on one line
#include <cstdio>
#include <cstdlib>

#include "tests/bench/peers/tcp_pair.h"

int main(int argc, char** argv) {
  const int mebibytes = argc == 3 ? std::atoi(argv[1]) : 0;
  const int rounds = argc == 3 ? std::atoi(argv[2]) : 0;
  if (mebibytes < 1 || rounds < 1) {
    std::fprintf(stderr, "usage: %s MEBIBYTES ROUNDS\n", argv[0]);
    return 64;
  }
  lockstep::bench::TcpPair pair(static_cast<size_t>(mebibytes) << 20);
  pair.Run();  // memory is touched, the connection is up to speed
  for (int i = 0; i < rounds; ++i) {
    const auto round = pair.Run();
    std::printf("%.3f %.3f ", round.there, round.back);
  }
  std::printf("\n");
}
