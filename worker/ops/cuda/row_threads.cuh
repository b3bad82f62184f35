// How kernels are launched whose blocks have a row each.
#pragma once

namespace lockstep::worker::cuda {

// A power of two: block_sum.cuh halves it.
inline constexpr unsigned int kRowThreads = 64;

}  // namespace lockstep::worker::cuda
