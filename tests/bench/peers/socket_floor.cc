// How long a synchronous step over sockets on one machine takes at least, from what its parts cost
// a processor: every gradient and every value goes through a TCP connection, every value is copied
// out to where the worker wants it, the gradients are added up and applied. Nothing else takes
// time, and all processors are always busy.
//
//   socket_floor WORKERS MEBIBYTES    prints milliseconds
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "tests/bench/peers/huge_pages.h"
#include "tests/bench/peers/tcp_pair.h"

namespace lockstep::bench {
namespace {

constexpr int kRounds = 10;
constexpr float kRate = 0.01f;

// Seconds of all processors for a connection that carries `bytes` there and back `rounds` times,
// its set-up included.
double CpuSecondsOf(int rounds, size_t bytes) {
  const double before = CpuSeconds();
  {
    TcpPair pair(bytes);
    for (int i = 0; i < rounds; ++i) pair.Run();
  }
  return CpuSeconds() - before;
}

// Seconds of a processor per byte through a connection, both ends together. The difference of two
// runs leaves out what both do once: the fork, the page faults of the buffers, the handshake.
double SecondsPerTcpByte(size_t bytes) {
  CpuSecondsOf(1, bytes);
  const double seconds = CpuSecondsOf(2 * kRounds, bytes) - CpuSecondsOf(kRounds, bytes);
  return seconds / static_cast<double>(2 * kRounds * bytes);
}

// The shortest of some runs, in seconds.
template <typename Pass>
double Shortest(const Pass& pass) {
  double shortest = 1e9;
  for (int i = 0; i < kRounds; ++i) {
    const auto start = std::chrono::steady_clock::now();
    pass();
    const std::chrono::duration<double> took = std::chrono::steady_clock::now() - start;
    shortest = std::min(shortest, took.count());
  }
  return shortest;
}

int Processors() {
  cpu_set_t set;
  return sched_getaffinity(0, sizeof set, &set) == 0 ? CPU_COUNT(&set) : 1;
}

double FloorSeconds(int workers, size_t bytes) {
  HugePageVector<float> a(bytes / sizeof(float), 1);
  HugePageVector<float> b(bytes / sizeof(float), 2);
  const double copy = Shortest([&] { std::memcpy(a.data(), b.data(), bytes); });
  const double add = Shortest([&] {
    for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  });
  const double apply = Shortest([&] {
    for (size_t i = 0; i < a.size(); ++i) a[i] -= kRate * b[i];
  });
  const double transport = 2 * SecondsPerTcpByte(bytes) * static_cast<double>(bytes);
  return (workers * (transport + copy + add) + apply) / Processors();
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  const int workers = argc == 3 ? std::atoi(argv[1]) : 0;
  const int mebibytes = argc == 3 ? std::atoi(argv[2]) : 0;
  if (workers < 1 || mebibytes < 1) {
    std::fprintf(stderr, "usage: %s WORKERS MEBIBYTES\n", argv[0]);
    return 64;
  }
  std::printf("%.3f\n",
              1000 * lockstep::bench::FloorSeconds(workers, static_cast<size_t>(mebibytes) << 20));
}
