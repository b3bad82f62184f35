// Progress is the state of a worker's training. The training thread writes it; heartbeat and status
// read it. Thread-safe.
#pragma once

#include <span>
#include <string>
#include <utility>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/ids.h"
#include "worker/strategy/update_strategy.h"

namespace lockstep::worker {

struct ProgressReport {
  GlobalStep local_step;
  std::string waiting_for;  // empty: computing
  uint64_t examples = 0;
  uint64_t accepted = 0;  // variables
  uint64_t stale = 0;
  double seconds_computing = 0;
  double seconds_waiting_for_data = 0;
  double seconds_training = 0;  // since the first step began
  float loss = 0;               // of the last batch
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
    strategy_ = nullptr;
  }
  // Each report asks `strategy` what it waits for. It lives until the next call of WaitFor or
  // Finish.
  void WaitFor(const UpdateStrategy* strategy) {
    absl::MutexLock lock(&mutex_);
    strategy_ = strategy;
  }
  void Computed(uint64_t examples, double seconds, float loss) {
    absl::MutexLock lock(&mutex_);
    report_.examples += examples;
    report_.seconds_computing += seconds;
    report_.loss = loss;
  }
  // Of this step.
  void WaitedForData(double seconds) {
    absl::MutexLock lock(&mutex_);
    report_.seconds_waiting_for_data += seconds;
  }
  // Up to now.
  void Trained(double seconds) {
    absl::MutexLock lock(&mutex_);
    report_.seconds_training = seconds;
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
    strategy_ = nullptr;
  }
  ProgressReport Report() const {
    absl::MutexLock lock(&mutex_);
    ProgressReport report = report_;
    if (strategy_ != nullptr) report.waiting_for = strategy_->DescribeWait();
    return report;
  }

 private:
  mutable absl::Mutex mutex_;
  ProgressReport report_ ABSL_GUARDED_BY(mutex_);
  // Null: report_.waiting_for holds.
  const UpdateStrategy* strategy_ ABSL_GUARDED_BY(mutex_) = nullptr;
};

// Combines the reports of several replicas of the model that train independently; at least one
// (CHECK). Counts are sums, times and loss are means, the step is the highest. If all replicas
// wait, `waiting_for` is that of the first. Done when all are.
ProgressReport Combine(std::span<const Progress> replicas);

}  // namespace lockstep::worker
