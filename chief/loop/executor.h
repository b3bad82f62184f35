// One thread for everything that the chief decides. The chief's classes are not thread-safe: their
// methods run on this thread, and so do the callbacks of the calls that they make.
#pragma once

#include <functional>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"

namespace lockstep::chief {

class Executor {
 public:
  virtual ~Executor() = default;
  // Runs `work` after what was posted before, or never: when the loop has ended, `work` is
  // destroyed. From any thread.
  virtual void Post(absl::AnyInvocable<void()> work) = 0;
};

// A completion callback that brings its result to the executor's thread. `executor` outlives the
// call.
template <typename T, typename Done>
std::function<void(absl::StatusOr<T>)> On(Executor* executor, Done done) {
  return [executor, done = std::move(done)](absl::StatusOr<T> result) {
    executor->Post([done, result = std::move(result)]() mutable { done(std::move(result)); });
  };
}

}  // namespace lockstep::chief
