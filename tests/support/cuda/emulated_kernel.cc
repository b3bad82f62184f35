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

#if defined(__SANITIZE_THREAD__)

// Threads one after the other, on two threads of the host: the sanitizer sees what they share.
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

void RunWithoutBarriers(const std::function<void()>& call, unsigned int blocks,
                        unsigned int threads) {
  for (unsigned int block = 0; block < blocks; ++block) {
    for (const unsigned int first : {1u, 0u}) {
      for (unsigned int t = first; t < threads; t += 2) {
        SetIndices(blocks, block, threads, t);
        call();
      }
    }
  }
}

using Jump = void* [5];  // of __builtin_setjmp

// A function of its own: in one that it returns to GCC drops the second return. AddressSanitizer
// would take the stack of a thread for that of a function that ends.
[[noreturn]] __attribute__((noipa, no_sanitize_address)) void JumpTo(Jump* to) {
  __builtin_longjmp(*to, 1);
}

// swapcontext would also save and set the signal mask, with two system calls.
__attribute__((noinline, no_sanitize_address)) void Switch(Jump* from, Jump* to) {
  if (__builtin_setjmp(*from) == 0) JumpTo(to);
}

// The first switch to a stack.
__attribute__((noinline)) void Enter(Jump* from, const ucontext_t& to) {
  if (__builtin_setjmp(*from) == 0) LOCKSTEP_CHECK(setcontext(&to) == 0);
}

// Threads of a block take turns on one thread of the host, from barrier to barrier: a barrier costs
// a switch of stacks and not of threads. Stacks are kept from block to block.
class Block {
 public:
  void Run(const std::function<void()>& call, unsigned int blocks, unsigned int block,
           unsigned int threads) {
    call_ = &call;
    std::function<void()> wait = [this] { Switch(&running_->jump, &scheduler_); };
    wait_at_barrier = &wait;
    while (threads_.size() < threads) threads_.push_back(std::make_unique<Thread>());
    for (unsigned int t = 0; t < threads; ++t) threads_[t]->has_ended = false;
    bool is_running = true;
    while (is_running) {
      is_running = false;
      for (unsigned int t = 0; t < threads; ++t) {
        running_ = threads_[t].get();
        if (running_->has_ended) continue;
        SetIndices(blocks, block, threads, t);
        Resume(running_);
        is_running = is_running || !running_->has_ended;
      }
    }
    wait_at_barrier = nullptr;
  }

 private:
  static constexpr size_t kStackBytes = 64 * 1024;

  struct Thread {
    Jump jump = {};
    std::unique_ptr<char[]> stack;  // null: has not started
    bool has_ended = false;
  };

  void Resume(Thread* thread) {
    if (thread->stack != nullptr) return Switch(&scheduler_, &thread->jump);
    thread->stack = std::make_unique_for_overwrite<char[]>(kStackBytes);
    ucontext_t context;
    LOCKSTEP_CHECK(getcontext(&context) == 0);
    context.uc_stack.ss_sp = thread->stack.get();
    context.uc_stack.ss_size = kStackBytes;
    context.uc_link = nullptr;
    starting_ = this;
    makecontext(&context, &Block::Start, 0);
    Enter(&scheduler_, context);
  }
  // Never returns: the thread waits for the next block.
  static void Start() {
    Block* const block = starting_;
    while (true) {
      (*block->call_)();
      block->running_->has_ended = true;
      Switch(&block->running_->jump, &block->scheduler_);
    }
  }

  static thread_local Block* starting_;

  const std::function<void()>* call_ = nullptr;
  std::vector<std::unique_ptr<Thread> > threads_;
  Thread* running_ = nullptr;
  Jump scheduler_ = {};
};

thread_local Block* Block::starting_ = nullptr;

void RunWithBarriers(const std::function<void()>& call, unsigned int blocks, unsigned int threads) {
  static thread_local Block emulated;
  for (unsigned int block = 0; block < blocks; ++block) emulated.Run(call, blocks, block, threads);
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
