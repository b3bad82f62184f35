// One thread for everything that the chief decides. The chief's classes are not thread-safe: their
// methods run on this thread, and so do the callbacks of the calls that they make.
#pragma once

#include <type_traits>
#include <utility>

#include "absl/functional/any_invocable.h"
#include "absl/status/statusor.h"
#include "common/base/callback.h"

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
template <typename T>
Callback<T> On(Executor* executor, std::type_identity_t<Callback<T>> done) {
  return [executor, done = std::move(done)](absl::StatusOr<T> result) mutable {
    executor->Post([done = std::move(done), result = std::move(result)]() mutable {
      done(std::move(result));
    });
  };
}

}  // namespace lockstep::chief
