// How long a synchronous step over sockets on one machine takes at least, from what its parts cost
// a processor. Nothing else takes time, and all processors are always busy.
//
//   socket_floor WORKERS MEBIBYTES ps|ring    prints milliseconds
//
// ps: every gradient and every value goes through a TCP connection, every value is copied out to
// where the worker wants it, the gradients are added up and applied.
// ring: every worker sends 2 (W - 1) / W of the bytes, adds one half of what it receives to its
// own, copies the other half, and applies the sum.
#include <sched.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string_view>

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

// What a pass over the bytes of a gradient takes one processor, in seconds.
struct Passes {
  double tcp = 0;  // through a connection, both ends together
  double copy = 0;
  double add = 0;
  double apply = 0;
};

Passes MeasurePasses(size_t bytes) {
  HugePageVector<float> a(bytes / sizeof(float), 1);
  HugePageVector<float> b(bytes / sizeof(float), 2);
  Passes passes;
  passes.tcp = SecondsPerTcpByte(bytes) * static_cast<double>(bytes);
  passes.copy = Shortest([&] { std::memcpy(a.data(), b.data(), bytes); });
  passes.add = Shortest([&] {
    for (size_t i = 0; i < a.size(); ++i) a[i] += b[i];
  });
  passes.apply = Shortest([&] {
    for (size_t i = 0; i < a.size(); ++i) a[i] -= kRate * b[i];
  });
  return passes;
}

double FloorOfPs(int workers, const Passes& passes) {
  return (workers * (2 * passes.tcp + passes.copy + passes.add) + passes.apply) / Processors();
}

double FloorOfRing(int workers, const Passes& passes) {
  const double others = static_cast<double>(workers - 1) / workers;
  const double reduced = others * (2 * passes.tcp + passes.add + passes.copy);
  return workers * (reduced + passes.apply) / Processors();
}

}  // namespace
}  // namespace lockstep::bench

int main(int argc, char** argv) {
  const int workers = argc == 4 ? std::atoi(argv[1]) : 0;
  const int mebibytes = argc == 4 ? std::atoi(argv[2]) : 0;
  const std::string_view kind = argc == 4 ? argv[3] : "";
  if (workers < 1 || mebibytes < 1 || (kind != "ps" && kind != "ring")) {
    std::fprintf(stderr, "usage: %s WORKERS MEBIBYTES ps|ring\n", argv[0]);
    return 64;
  }
  using namespace lockstep::bench;
  const Passes passes = MeasurePasses(static_cast<size_t>(mebibytes) << 20);
  const auto floor = kind == "ps" ? FloorOfPs : FloorOfRing;
  std::printf("%.3f\n", 1000 * floor(workers, passes));
}
