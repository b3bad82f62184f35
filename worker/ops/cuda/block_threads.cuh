// Launch parameters of kernels.
#pragma once

namespace lockstep::worker::cuda {

// Of kernels whose threads have an element each.
inline constexpr unsigned int kThreadsPerBlock = 256;

// Of kernels whose blocks have a row each. A power of two: block_sum.cuh halves it.
inline constexpr unsigned int kRowThreads = 64;

// Columns of a matrix that a thread has side by side, where their number is a multiple.
inline constexpr int kColumnLanes = 4;

}  // namespace lockstep::worker::cuda
