// A call to a ps that is made again until the ps has answered it.
#pragma once

#include <optional>
#include <utility>

#include "absl/status/statusor.h"
#include "absl/synchronization/notification.h"
#include "absl/time/time.h"
#include "common/base/clock.h"
#include "common/base/monotonic_wait.h"
#include "common/base/retry_policy.h"
#include "common/client/ps_client.h"

namespace lockstep::worker {

// Calls start(done) and waits for its answer.
template <typename T, typename Start>
absl::StatusOr<T> CallOnce(const Start& start) {
  absl::Notification answered;
  absl::StatusOr<T> result;
  start([&](absl::StatusOr<T> answer) {
    result = std::move(answer);
    answered.Notify();
  });
  answered.WaitForNotification();
  return result;
}

// Calls start(done), a parked call, again and again while the ps is away or has no room. Returns
// the answer; the error of a ps that stays away for longer than `patience`, on `clock`; or
// CANCELLED once `stop` is notified.
template <typename T, typename Start>
absl::StatusOr<T> CallPersistently(const Start& start, absl::Duration patience, const Clock* clock,
                                   const MonotonicNotification* stop) {
  RetryPolicy retry(CallKind::kParked, {.patience = patience});
  while (true) {
    absl::StatusOr<T> answer = CallOnce<T>(start);
    if (answer.ok()) return answer;
    const std::optional<absl::Duration> pause =
        retry.OnFailure(answer.status(), clock->Monotonic());
    if (!pause.has_value()) return retry.GivenUp(answer.status());
    if (stop->WaitFor(*pause)) return absl::CancelledError("training was stopped");
  }
}

}  // namespace lockstep::worker
