// Keeps other threads' calls of CUDA out of NCCL's launches over several GPUs.
#pragma once

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"

namespace lockstep::worker::cuda {

// The kernels of a sum, one on each GPU, wait for one another. A call by another thread may wait
// for a GPU: one that frees memory, loads code or copies from memory that is not pinned. Where it
// comes between two of NCCL's launches, it waits for a kernel that waits for the next launch, and
// that launch waits for a lock of the driver that the call holds: none of them ends. NCCL's user
// guide proposes a lock ("Concurrency between NCCL and CUDA calls"). Its launch mode GROUP would
// need none; PARALLEL, which recent versions default to, launches on one GPU after the other.
//
// One for the process, because pinned memory concerns every GPU. A call that waits for all work of
// a GPU may hold it: what is on the GPUs then needs no further launch. Calls that wait for an event
// or a stream do not hold it, so that launches need not wait for them.
class LaunchLock {
 public:
  enum class Hold { kNone, kShared, kExclusive };

  // Around a call of CUDA. Threads that hold it run beside each other. Does nothing in a thread
  // that holds the lock already.
  class Shared {
   public:
    Shared();
    ~Shared();
    Shared(const Shared&) = delete;
    Shared& operator=(const Shared&) = delete;

   private:
    const bool is_first_;
  };

  // Around the launches of a group. Blocks until no other thread holds the lock. Not in a thread
  // that holds it.
  class Exclusive {
   public:
    Exclusive();
    ~Exclusive();
    Exclusive(const Exclusive&) = delete;
    Exclusive& operator=(const Exclusive&) = delete;
  };

  // By this thread.
  static Hold held() { return held_; }

 private:
  static absl::Mutex mutex_;
  static constinit thread_local Hold held_;
};

// Functions of a library, which it calls under the lock: `calls->Function(...)` holds it until the
// end of that expression.
template <typename Functions>
class LockedCalls {
 public:
  explicit LockedCalls(const Functions* functions) : functions_(functions) {}

  const Functions* operator->() const { return functions_; }

 private:
  const LaunchLock::Shared lock_;
  const Functions* const functions_;
};

}  // namespace lockstep::worker::cuda
