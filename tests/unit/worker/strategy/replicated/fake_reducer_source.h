// Groups that a test tells, with reducers that it ends.
#pragma once

#include <catch2/catch.hpp>
#include <memory>
#include <utility>
#include <vector>

#include "worker/strategy/replicated/reducer_source.h"

namespace lockstep::worker {

class FakeReducer final : public GroupReducer {
 public:
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
  void End(absl::Status status) { std::exchange(running, nullptr)(std::move(status)); }

  int reductions = 0;
  int64_t last_step = -1;
  StatusCallback running;
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
    auto reducer = std::make_shared<FakeReducer>();
    FakeReducer* const raw = reducer.get();
    group.reducer = std::move(reducer);
    group.view = View(++told);
    std::exchange(pending, nullptr)(std::move(group));
    return raw;
  }
  FakeReducer* Tell(int64_t step, bool sums_differ = false) {
    return Tell({.step = GlobalStep(step), .sums_differ = sums_differ});
  }

  Callback<ReducerOfGroup> pending;
  uint64_t told = 0;
  std::vector<GroupViewId> failures;
};

}  // namespace lockstep::worker
