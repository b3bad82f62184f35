// An executor for work of one owner, on the thread of another executor.
//
// Lives on that executor's thread, except for Post.
#pragma once

#include <utility>

#include "chief/loop/executor.h"

namespace lockstep::chief {

// Calls under way have it, so it outlives them; the owner of the work does not need to.
class ClosableExecutor final : public Executor {
 public:
  // `executor` outlives this.
  explicit ClosableExecutor(Executor* executor) : executor_(executor) {}

  void Post(absl::AnyInvocable<void()> work) override {
    executor_->Post([this, work = std::move(work)]() mutable {
      if (!is_closed_) work();
    });
  }
  // Drops the work that has not begun, and all that is posted later.
  void Close() { is_closed_ = true; }

 private:
  Executor* const executor_;
  bool is_closed_ = false;
};

}  // namespace lockstep::chief
