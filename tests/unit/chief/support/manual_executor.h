// An executor that works when told, on the test's thread.
#pragma once

#include <deque>
#include <utility>

#include "chief/loop/executor.h"

namespace lockstep::chief {

class ManualExecutor final : public Executor {
 public:
  void Post(absl::AnyInvocable<void()> work) override { queue_.push_back(std::move(work)); }

  // Until nothing is left.
  void Run() {
    while (!queue_.empty()) {
      absl::AnyInvocable<void()> work = std::move(queue_.front());
      queue_.pop_front();
      work();
    }
  }

 private:
  std::deque<absl::AnyInvocable<void()>> queue_;
};

}  // namespace lockstep::chief
