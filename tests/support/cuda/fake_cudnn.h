// A cuDNN whose heuristics name the engines that a test has listed: those of mode A, and the ones
// to fall back on. Plans run on the streams of the fake driver, all engines alike. Handles that are
// made or destroyed wait for the device, as cuDNN may.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/synchronization/mutex.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "worker/ops/cuda/cudnn/cudnn_library.h"

namespace lockstep::test {

inline constexpr worker::cuda::CudnnStatus kCudnnBadParameter = 2000;

struct FakeEngine {
  int64_t index = 0;
  std::vector<int> notes;
  int64_t workspace = 0;
  bool can_plan = true;
  absl::Duration takes;  // as AdvanceWhenRun says
};

// cuDNN's functions have no object: they are of the FakeCudnn that was made last and exists.
class FakeCudnn {
 public:
  explicit FakeCudnn(std::vector<FakeEngine> engines, std::vector<FakeEngine> fallback = {});
  ~FakeCudnn();

  static const worker::cuda::CudnnLibrary& library();
  static FakeCudnn& Current();

  // The so-many-th call from now on (from 0) fails with this status.
  void FailCall(int64_t index, worker::cuda::CudnnStatus status = kCudnnBadParameter) {
    failing_call_ = calls_ + index;
    failure_ = status;
  }
  // From now on no plan runs.
  void FailRuns() { runs_fail_ = true; }
  int64_t calls() const { return calls_; }
  // From now on the run of a plan moves this clock, which outlives it, by what its engine takes.
  void AdvanceWhenRun(ManualClock* clock) { clock_ = clock; }
  // Descriptors and handles that exist.
  size_t live() const { return descriptors_.size() + handles_.size(); }
  // Handles that enqueue on a stream of the driver.
  int64_t handles_with_stream() const;
  // Numbers and enumerators that were set, of the last descriptor of this type.
  std::vector<int64_t> LastSet(int type, int attribute) const;

 private:
  friend struct FakeCudnnCalls;

  // Lives as long as one that it is an attribute of.
  struct Descriptor {
    int type = 0;
    bool is_final = false;
    const FakeEngine* engine = nullptr;  // of a configuration, an engine or a plan
    std::map<int, std::vector<int64_t>> numbers;
    std::map<int, std::vector<void*>> pointers;
    std::map<int, std::shared_ptr<const Descriptor>> attributes;
  };

  bool Fails() { return calls_++ == failing_call_; }

  mutable absl::Mutex mutex_;  // of calls, which come from any thread
  ManualClock* clock_ = nullptr;
  const std::vector<FakeEngine> engines_;
  const std::vector<FakeEngine> fallback_;
  FakeCudnn* const previous_;
  std::map<void*, std::shared_ptr<Descriptor>> descriptors_;
  std::map<worker::cuda::CudnnContext*, std::unique_ptr<worker::cuda::CudnnContext>> handles_;
  std::map<int, std::map<int, std::vector<int64_t>>> last_set_;
  int64_t calls_ = 0;
  int64_t failing_call_ = -1;
  worker::cuda::CudnnStatus failure_ = worker::cuda::kCudnnSuccess;
  bool runs_fail_ = false;
};

}  // namespace lockstep::test
