#include "tests/support/cuda/emulated_kernel.h"

#include <pthread.h>
#include <ucontext.h>

#include <map>
#include <memory>
#include <thread>
#include <vector>

#include "common/base/check.h"
#include "tests/support/cuda/emulation.h"

thread_local Dim3 threadIdx;
thread_local Dim3 blockIdx;
thread_local Dim3 blockDim;
thread_local Dim3 gridDim;

namespace lockstep::test {
namespace {

// What a barrier does in the block that runs; null: the kernel has none.
thread_local std::function<void()>* wait_at_barrier = nullptr;

void SetIndices(unsigned int blocks, unsigned int block, unsigned int threads,
                unsigned int thread) {
  gridDim = {blocks, 1, 1};
  blockIdx = {block, 0, 0};
  blockDim = {threads, 1, 1};
  threadIdx = {thread, 0, 0};
}

// Threads one after the other, on two threads of the host.
void RunWithoutBarriers(const std::function<void()>& call, unsigned int blocks,
                        unsigned int threads) {
  const auto run = [&](unsigned int first) {
    for (unsigned int block = 0; block < blocks; ++block) {
      for (unsigned int t = first; t < threads; t += 2) {
        SetIndices(blocks, block, threads, t);
        call();
      }
    }
  };
  std::thread odd(run, 1);
  run(0);
  odd.join();
}

#if defined(__SANITIZE_THREAD__)

// Each thread of a block is one of the host: the sanitizer sees what no barrier orders.
void RunWithBarriers(const std::function<void()>& call, unsigned int blocks, unsigned int threads) {
  pthread_barrier_t barrier;
  LOCKSTEP_CHECK(pthread_barrier_init(&barrier, nullptr, threads) == 0);
  std::function<void()> wait = [&barrier] { pthread_barrier_wait(&barrier); };
  const auto run = [&](unsigned int thread) {
    wait_at_barrier = &wait;
    for (unsigned int block = 0; block < blocks; ++block) {
      SetIndices(blocks, block, threads, thread);
      call();
      wait();  // the next block has the same shared memory
    }
  };
  std::vector<std::thread> running;
  for (unsigned int thread = 0; thread < threads; ++thread) running.emplace_back(run, thread);
  for (std::thread& one : running) one.join();
  pthread_barrier_destroy(&barrier);
}

#else

// Threads of a block take turns on one thread of the host, from barrier to barrier: a barrier costs
// a switch of stacks and not of threads.
class Block {
 public:
  Block(const std::function<void()>& call, unsigned int threads) : call_(call) {
    for (unsigned int t = 0; t < threads; ++t) {
      threads_.push_back(std::make_unique<Thread>());
      threads_.back()->stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
    }
  }

  void Run(unsigned int blocks, unsigned int block) {
    std::function<void()> wait = [this] {
      LOCKSTEP_CHECK(swapcontext(&running_->context, &scheduler_) == 0);
    };
    wait_at_barrier = &wait;
    for (const auto& thread : threads_) Prepare(thread.get());
    bool is_running = true;
    while (is_running) {
      is_running = false;
      for (unsigned int t = 0; t < threads_.size(); ++t) {
        running_ = threads_[t].get();
        if (running_->has_ended) continue;
        SetIndices(blocks, block, static_cast<unsigned int>(threads_.size()), t);
        LOCKSTEP_CHECK(swapcontext(&scheduler_, &running_->context) == 0);
        is_running = is_running || !running_->has_ended;
      }
    }
    wait_at_barrier = nullptr;
  }

 private:
  static constexpr size_t kStackBytes = 64 * 1024;

  struct Thread {
    ucontext_t context = {};
    std::unique_ptr<char[]> stack;
    bool has_ended = false;
  };

  void Prepare(Thread* thread) {
    thread->has_ended = false;
    LOCKSTEP_CHECK(getcontext(&thread->context) == 0);
    thread->context.uc_stack.ss_sp = thread->stack.get();
    thread->context.uc_stack.ss_size = kStackBytes;
    thread->context.uc_link = &scheduler_;
    starting_ = this;
    makecontext(&thread->context, &Block::Start, 0);
  }
  static void Start() {
    Block* const block = starting_;
    block->call_();
    block->running_->has_ended = true;
  }

  static thread_local Block* starting_;

  const std::function<void()>& call_;
  std::vector<std::unique_ptr<Thread> > threads_;
  Thread* running_ = nullptr;
  ucontext_t scheduler_ = {};
};

thread_local Block* Block::starting_ = nullptr;

void RunWithBarriers(const std::function<void()>& call, unsigned int blocks, unsigned int threads) {
  Block emulated(call, threads);
  for (unsigned int block = 0; block < blocks; ++block) emulated.Run(blocks, block);
}

#endif

std::map<std::string, EmulatedKernel>& Kernels() {
  static std::map<std::string, EmulatedKernel> kernels;
  return kernels;
}

}  // namespace

void RunEmulated(const std::function<void()>& thread, bool has_barriers, unsigned int blocks,
                 unsigned int threads) {
  if (has_barriers) {
    RunWithBarriers(thread, blocks, threads);
  } else {
    RunWithoutBarriers(thread, blocks, threads);
  }
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

void __syncthreads() {
  LOCKSTEP_CHECK(lockstep::test::wait_at_barrier != nullptr);
  (*lockstep::test::wait_at_barrier)();
}
