// Loops over the OpenMP threads of the current device: the same team that oneDNN uses.
#pragma once

#include <omp.h>

#include <algorithm>
#include <cstdint>

namespace lockstep::worker::cpu {

// Calls body(part, begin, end) for consecutive parts of [0, n), at least `grain` long each, in
// parallel. The parts depend on n, grain and the number of threads alone. Returns their number,
// which is at most the number of threads.
template <typename Body>
int ParallelFor(int64_t n, int64_t grain, const Body& body) {
#if defined(__SANITIZE_THREAD__)
  // The sanitizer cannot see the barriers of OpenMP and would report every loop.
  const int most = 1;
#else
  const int most = omp_get_max_threads();
#endif
  const int parts = static_cast<int>(std::clamp<int64_t>(n / std::max<int64_t>(grain, 1), 1, most));
  if (parts == 1) {
    body(0, int64_t{0}, n);
    return 1;
  }
#pragma omp parallel for num_threads(parts) schedule(static, 1)
  for (int part = 0; part < parts; ++part) {
    body(part, n * part / parts, n * (part + 1) / parts);
  }
  return parts;
}

// Elements below which a second thread costs more than it brings.
inline constexpr int64_t kElementGrain = 16 * 1024;

}  // namespace lockstep::worker::cpu
