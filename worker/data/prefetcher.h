// Prepares the batches of coming steps on a thread of its own, in a fixed set of buffers.
#pragma once

#include <functional>
#include <memory>
#include <thread>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/data/batch.h"

namespace lockstep::worker {

// One consumer at a time, but for Stop; destroyed by the consumer.
class Prefetcher {
 public:
  // Writes the batches of a step. Called on the prefetcher's thread only.
  using Fill = std::function<void(int64_t step, std::vector<Batch>* batches)>;
  // Makes one buffer. Called in the constructor.
  using Make = std::function<std::vector<Batch>()>;

  // Keeps `ahead` >= 1 steps ready beside the one in use, from step 0 on, and none beyond
  // `last_step`.
  Prefetcher(int64_t ahead, int64_t last_step, const Make& make, Fill fill);
  Prefetcher(const Prefetcher&) = delete;
  Prefetcher& operator=(const Prefetcher&) = delete;
  // Waits for the batch being filled, no longer.
  ~Prefetcher();

  // From now on no step is filled but the one at hand, and Get returns null, also where it waits.
  // Thread-safe.
  void Stop();

  // Blocks until the batches of the step are ready, 0 <= step <= last_step. They stay valid until
  // the next call. A step that is not the coming one restarts the work there. Null after Stop.
  const std::vector<Batch>* Get(int64_t step);
  // Whether Get would not block.
  bool Has(int64_t step) const;

 private:
  struct PrefetchedStep {
    int64_t step = -1;
    std::vector<Batch> batches;
  };

  // Of the thread that fills. Blocks until a slot is free and a step is wanted; null: the end.
  PrefetchedStep* NextToFill();
  void OnFilled(PrefetchedStep* slot);
  void FillSlots();
  bool MayFill() const ABSL_SHARED_LOCKS_REQUIRED(mutex_);
  // Puts slots that the consumer has passed by back to the free ones, and aims at `step`.
  void Advance(int64_t step) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const int64_t last_step_;
  const Fill fill_;
  std::vector<PrefetchedStep> slots_;  // a slot in none of the lists below belongs to its user

  mutable absl::Mutex mutex_;
  std::vector<PrefetchedStep*> free_ ABSL_GUARDED_BY(mutex_);
  std::vector<PrefetchedStep*> ready_ ABSL_GUARDED_BY(mutex_);  // in ascending order of steps
  PrefetchedStep* in_use_ ABSL_GUARDED_BY(mutex_) = nullptr;    // the consumer's
  PrefetchedStep* filling_ ABSL_GUARDED_BY(mutex_) = nullptr;   // the thread's
  bool filling_wanted_ ABSL_GUARDED_BY(mutex_) = false;         // not overtaken by a restart
  int64_t next_step_ ABSL_GUARDED_BY(mutex_) = 0;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;

  std::thread thread_;
};

}  // namespace lockstep::worker
