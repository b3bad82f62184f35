// Blocks a thread until an asynchronous call has its result.
#pragma once

#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "common/base/callback.h"

namespace lockstep {

// Calls start(callback), which takes a Callback<T>, and returns what that is told.
template <typename T, typename Start>
absl::StatusOr<T> Await(Start&& start) {
  absl::Notification told;
  absl::StatusOr<T> result;
  start(Callback<T>([&](absl::StatusOr<T> answer) {
    result = std::move(answer);
    told.Notify();
  }));
  told.WaitForNotification();
  return result;
}

}  // namespace lockstep
