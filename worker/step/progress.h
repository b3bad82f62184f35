// What a worker is doing, written by its training thread and read by heartbeat and
// status. Thread-safe.
#pragma once

#include <string>

#include "absl/base/thread_annotations.h"
#include "absl/strings/str_cat.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "common/base/quantity.h"

namespace lockstep::worker {

struct ProgressReport {
  GlobalStep local_step;
  std::string waiting_for;  // empty: computing
  uint64_t examples = 0;
  uint64_t accepted = 0;  // variables
  uint64_t stale = 0;
  double seconds_computing = 0;
  float loss = 0;  // of the last batch
  bool done = false;
};

class Progress {
 public:
  void StartStep(GlobalStep local_step) {
    absl::MutexLock lock(&mutex_);
    report_.local_step = local_step;
  }
  void WaitFor(std::string what) {
    absl::MutexLock lock(&mutex_);
    report_.waiting_for = std::move(what);
    awaited_ = nullptr;
  }
  // Reads "<what> (step 1,200)". For every step: allocates nothing. `what` is a literal.
  void WaitForStep(const char* what, GlobalStep step) {
    absl::MutexLock lock(&mutex_);
    awaited_ = what;
    awaited_step_ = step;
  }
  void Computed(uint64_t examples, double seconds, float loss) {
    absl::MutexLock lock(&mutex_);
    report_.examples += examples;
    report_.seconds_computing += seconds;
    report_.loss = loss;
  }
  void Pushed(uint64_t accepted, uint64_t stale) {
    absl::MutexLock lock(&mutex_);
    report_.accepted += accepted;
    report_.stale += stale;
  }
  void Finish() {
    absl::MutexLock lock(&mutex_);
    report_.done = true;
    report_.waiting_for = "the end of the job";
    awaited_ = nullptr;
  }
  ProgressReport Report() const {
    absl::MutexLock lock(&mutex_);
    ProgressReport report = report_;
    if (awaited_ != nullptr) {
      report.waiting_for = absl::StrCat(
          awaited_, " (step ", WithCommas(static_cast<uint64_t>(awaited_step_.value())), ")");
    }
    return report;
  }

 private:
  mutable absl::Mutex mutex_;
  ProgressReport report_ ABSL_GUARDED_BY(mutex_);
  const char* awaited_ ABSL_GUARDED_BY(mutex_) = nullptr;  // null: report_ says what is waited for
  GlobalStep awaited_step_ ABSL_GUARDED_BY(mutex_);
};

}  // namespace lockstep::worker
