// Groups that a test tells, with reducers that it ends.
#pragma once

#include <atomic>
#include <catch2/catch.hpp>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "absl/base/thread_annotations.h"
#include "absl/synchronization/mutex.h"
#include "common/base/check.h"
#include "common/base/gate.h"
#include "common/base/monotonic_wait.h"
#include "worker/strategy/replicated/reducer_source.h"

namespace lockstep::worker {

// How many reducers there are. Thread-safe.
class LiveCount {
 public:
  void Add(int change) {
    absl::MutexLock lock(&mutex_);
    count_ += change;
    changed_.Signal();
  }
  // False: there are still more after `limit`.
  bool AwaitAtMost(int most, absl::Duration limit = absl::Seconds(10)) {
    const auto is_reached = [&]() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_) { return count_ <= most; };
    absl::MutexLock lock(&mutex_);
    return changed_.AwaitFor(&mutex_, absl::Condition(&is_reached), limit);
  }

 private:
  absl::Mutex mutex_;
  MonotonicCondVar changed_;
  int count_ ABSL_GUARDED_BY(mutex_) = 0;
};

// Must not be destroyed in its callback (CHECK).
class FakeReducer final : public GroupReducer {
 public:
  explicit FakeReducer(LiveCount* live) : live_(live) { live_->Add(1); }
  ~FakeReducer() override {
    LOCKSTEP_CHECK(thread_of_callback_ != std::this_thread::get_id());
    gate_.Close();
    live_->Add(-1);
  }

  MutableTensorView tensor(int, int) const override { return {}; }
  void Reduce(int64_t step, absl::Span<const std::vector<TensorView>>,
              StatusCallback done) override {
    REQUIRE_FALSE(running);
    ++reductions;
    last_step = step;
    running = std::move(done);
  }
  void Cancel(absl::Status) override {}
  GroupTraffic traffic() const override { return {}; }
  void End(absl::Status status) {
    const Gate::Pass pass = gate_.Enter();
    thread_of_callback_ = std::this_thread::get_id();
    std::exchange(running, nullptr)(std::move(status));
    thread_of_callback_ = std::thread::id();
  }

  int reductions = 0;
  int64_t last_step = -1;
  StatusCallback running;

 private:
  LiveCount* const live_;
  std::atomic<std::thread::id> thread_of_callback_ = {};
  Gate gate_;  // held by the callback
};

class FakeReducerSource final : public ReducerSource {
 public:
  void Next(Callback<ReducerOfGroup> done) override { pending = std::move(done); }
  void NoteFailure(const GroupViewId& view) override { failures.push_back(view); }
  void SetOwnState(OwnState*) override {}
  void Cancel() override {
    if (pending) std::exchange(pending, nullptr)(absl::CancelledError("cancelled"));
  }

  // Of the group that is told as number `n`, from 1.
  static GroupViewId View(uint64_t n) { return {.term = 1, .epoch = 1, .view = n}; }
  FakeReducer* Tell(ReducerOfGroup group) {
    auto reducer = std::make_shared<FakeReducer>(&live);
    FakeReducer* const raw = reducer.get();
    group.reducer = std::move(reducer);
    group.view = View(++told);
    std::exchange(pending, nullptr)(std::move(group));
    return raw;
  }
  FakeReducer* Tell(int64_t step, bool sums_differ = false) {
    return Tell({.step = GlobalStep(step), .sums_differ = sums_differ});
  }

  LiveCount live;
  Callback<ReducerOfGroup> pending;
  uint64_t told = 0;
  std::vector<GroupViewId> failures;
};

}  // namespace lockstep::worker
