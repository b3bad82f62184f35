// A kernel whose threads read what others have written, on the emulation of a GPU. "with": a
// barrier is between; "without": there is none. Prints whether each has read what was written.
#include <array>
#include <cstdio>
#include <string>

#include "tests/support/cuda/emulated_kernel.h"
#include "tests/support/cuda/emulation.h"

int main(int, char** argv) {
  constexpr unsigned int kThreads = 8;
  const bool has_barrier = argv[1] == std::string("with");
  std::array<unsigned int, kThreads> written = {}, read = {};
  const auto next = [](unsigned int thread) { return (thread + 1) % kThreads; };
  const auto thread = [&] {
    written[threadIdx.x] = threadIdx.x + 1;
    if (has_barrier) __syncthreads();
    read[threadIdx.x] = written[next(threadIdx.x)];
  };
  lockstep::test::RunEmulated(thread, /*has_barriers=*/true, /*blocks=*/1, kThreads);
  bool is_right = true;
  for (unsigned int t = 0; t < kThreads; ++t) is_right = is_right && read[t] == next(t) + 1;
  std::puts(is_right ? "right" : "wrong");
  return 0;
}
