#include "tests/support/cuda/emulated_kernel.h"

#include <pthread.h>

#include <map>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "tests/support/cuda/emulation.h"

thread_local Dim3 threadIdx;
thread_local Dim3 blockIdx;
thread_local Dim3 blockDim;
thread_local Dim3 gridDim;

namespace {

// Of the block that runs; null for kernels without barriers.
thread_local pthread_barrier_t* block_barrier = nullptr;

}  // namespace

void __syncthreads() {
  LOCKSTEP_CHECK(block_barrier != nullptr);
  pthread_barrier_wait(block_barrier);
}

namespace lockstep::test {
namespace {

std::map<std::string, EmulatedKernel>& Kernels() {
  static std::map<std::string, EmulatedKernel> kernels;
  return kernels;
}

void RunThread(const std::function<void()>& call, Dim3 grid, unsigned int block, Dim3 dim,
               unsigned int thread) {
  gridDim = grid;
  blockIdx = {block, 0, 0};
  blockDim = dim;
  threadIdx = {thread, 0, 0};
  call();
}

}  // namespace

void RunEmulated(const std::function<void()>& thread, bool has_barriers, unsigned int blocks,
                 unsigned int threads) {
  const unsigned int host_threads = has_barriers ? threads : 2;
  pthread_barrier_t barrier;
  LOCKSTEP_CHECK(pthread_barrier_init(&barrier, nullptr, host_threads) == 0);
  const auto run = [&](unsigned int first) {
    if (has_barriers) block_barrier = &barrier;
    for (unsigned int block = 0; block < blocks; ++block) {
      for (unsigned int t = first; t < threads; t += host_threads) {
        RunThread(thread, {blocks, 1, 1}, block, {threads, 1, 1}, t);
      }
      // The next block has the same shared memory.
      if (has_barriers) pthread_barrier_wait(&barrier);
    }
  };
  std::vector<std::thread> running;
  for (unsigned int first = 0; first < host_threads; ++first) running.emplace_back(run, first);
  for (std::thread& one : running) one.join();
  pthread_barrier_destroy(&barrier);
}

const EmulatedKernel* FindEmulatedKernel(const std::string& name) {
  const auto found = Kernels().find(name);
  return found == Kernels().end() ? nullptr : &found->second;
}

std::vector<std::string> EmulatedKernelNames() {
  std::vector<std::string> names;
  for (const auto& [name, kernel] : Kernels()) names.push_back(name);
  return names;
}

RegisterEmulatedKernel::RegisterEmulatedKernel(const char* name, EmulatedKernel kernel) {
  LOCKSTEP_CHECK(Kernels().emplace(name, std::move(kernel)).second);
}

}  // namespace lockstep::test
