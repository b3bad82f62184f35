// Over how many replicas a global batch can be divided into equal parts. Pure.
#pragma once

#include <cstdint>
#include <vector>

namespace lockstep {

// All numbers of replicas from `least` on over which `global_batch` examples divide evenly, with
// `towers` each; ascending. Empty: there is none, or a number is below 1.
std::vector<int64_t> FittingReplicas(int64_t global_batch, int64_t towers, int64_t least);

// The largest of them that is at most `live`; 0: none.
int64_t MostFittingReplicas(int64_t global_batch, int64_t towers, int64_t least, int64_t live);

}  // namespace lockstep
