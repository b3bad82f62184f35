#include "common/replicas/fitting_replicas.h"

#include <algorithm>

namespace lockstep {

std::vector<int64_t> FittingReplicas(int64_t global_batch, int64_t towers, int64_t least) {
  std::vector<int64_t> fitting;
  if (global_batch < 1 || towers < 1 || least < 1 || global_batch % towers != 0) return fitting;
  // Divisors come in pairs: the batch of a replica's tower, and the replicas.
  const int64_t whole = global_batch / towers;
  for (int64_t divisor = 1; divisor <= whole / divisor; ++divisor) {
    if (whole % divisor != 0) continue;
    if (divisor >= least) fitting.push_back(divisor);
    if (whole / divisor != divisor && whole / divisor >= least) {
      fitting.push_back(whole / divisor);
    }
  }
  std::ranges::sort(fitting);
  return fitting;
}

int64_t MostFittingReplicas(int64_t global_batch, int64_t towers, int64_t least, int64_t live) {
  if (global_batch < 1 || towers < 1 || global_batch % towers != 0) return 0;
  const int64_t whole = global_batch / towers;
  for (int64_t replicas = std::min(live, whole); replicas >= std::max<int64_t>(least, 1);
       --replicas) {
    if (whole % replicas == 0) return replicas;
  }
  return 0;
}

}  // namespace lockstep
