// Launches of kernels.
#pragma once

#include <algorithm>
#include <cstdint>

#include "worker/device/cuda/cuda_module.h"
#include "worker/device/cuda/cuda_stream.h"
#include "worker/ops/cuda/block_threads.cuh"

namespace lockstep::worker::cuda {

// More than run at a time on any GPU. Where there are more elements than threads, each thread has
// several, and several of their loads under way.
inline constexpr int64_t kMostBlocks = 1 << 12;

template <typename Function>
class Kernel;

// Of a module, which outlives it.
template <typename... Parameters>
class Kernel<void(Parameters...)> {
 public:
  explicit Kernel(const CudaKernel& kernel) : kernel_(kernel) {}

  // Enqueues it on a CudaStream with a thread for each of `elements` pieces of work, as far as
  // there are threads. Nothing where there are none.
  void Launch(Stream* stream, int64_t elements, Parameters... arguments) const {
    Enqueue(stream, (elements + kThreadsPerBlock - 1) / kThreadsPerBlock, kThreadsPerBlock,
            arguments...);
  }

  // The same with a block of kRowThreads threads for each of `rows`.
  void LaunchBlocks(Stream* stream, int64_t rows, Parameters... arguments) const {
    Enqueue(stream, rows, kRowThreads, arguments...);
  }

 private:
  void Enqueue(Stream* stream, int64_t blocks, unsigned int threads,
               Parameters... arguments) const {
    if (blocks == 0) return;
    void* addresses[] = {&arguments...};
    static_cast<CudaStream*>(stream)->Launch(
        kernel_, static_cast<unsigned int>(std::min(blocks, kMostBlocks)), threads, addresses);
  }

  CudaKernel kernel_;
};

}  // namespace lockstep::worker::cuda
