// An NVML that tests imitate: of one GPU, with the events that a test lists.
#pragma once

#include <atomic>
#include <deque>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "worker/device/cuda/nvml_library.h"

namespace lockstep::test {

// One at a time: NVML's functions have no object. Made before the threads that call it.
class FakeNvml {
 public:
  static constexpr char kPciBusId[] = "ffff:00:00.0";  // that of the fake driver's first GPU
  static constexpr int kUtilization = 87;

  // `refused`: "nvmlEventSetCreate", of all calls; empty: none. `supported`: types of events.
  explicit FakeNvml(std::string refused = "",
                    unsigned long long supported = worker::cuda::kNvmlEventDoubleBitEccError |
                                                   worker::cuda::kNvmlEventXidCriticalError);
  ~FakeNvml();

  static worker::cuda::NvmlFunctions Functions();
  const worker::cuda::NvmlLibrary* library() const { return &library_; }

  // The next one that waits for events gets this.
  void Add(unsigned long long type, unsigned long long data);
  void AddResult(worker::cuda::NvmlResult result);
  // Blocks until all that were added have been handled.
  void AwaitHandled();
  unsigned long long registered() const { return registered_; }
  // Sets of events that exist.
  int sets() const { return sets_; }

 private:
  friend struct FakeNvmlCalls;
  using Event = std::pair<worker::cuda::NvmlResult, worker::cuda::NvmlEventData>;

  worker::cuda::NvmlResult Enter(const char* call) const;
  bool IsHandled() const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return handled_ == added_; }

  const std::string refused_;
  const unsigned long long supported_;
  std::atomic<unsigned long long> registered_ = 0;
  std::atomic<int> sets_ = 0;
  absl::Mutex mutex_;
  std::deque<Event> events_ ABSL_GUARDED_BY(mutex_);
  int added_ ABSL_GUARDED_BY(mutex_) = 0;
  int taken_ ABSL_GUARDED_BY(mutex_) = 0;
  int handled_ ABSL_GUARDED_BY(mutex_) = 0;  // taken before the last call that waited
  const worker::cuda::NvmlLibrary library_;  // last: made by the functions
};

}  // namespace lockstep::test
