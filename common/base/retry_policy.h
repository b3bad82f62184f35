// RetryPolicy decides which failed calls are made again, when, and for how long. Pure.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lockstep {

enum class CallKind {
  // Answered at once: a deadline that has passed is a failure.
  kPlain,
  // Answered when there is something to answer: at its deadline the call is made again at once, for
  // as long as that takes.
  kParked,
  // From the chief, parked or not. A ps whose job is over ends, and another one may follow it
  // (common/base/job_over.h).
  kCommand,
};

// True if the same call can succeed later although nobody changes anything. DATA_LOSS: true, since
// a message has changed on its way (transport.checksums), but false for kCommand: a file is broken.
bool IsRetryable(const absl::Status& status, CallKind kind);

struct RetryOptions {
  absl::Duration first_pause = absl::Milliseconds(20);
  absl::Duration longest_pause = absl::Seconds(1);
  // Time for which a peer that does not answer is tried.
  absl::Duration patience = absl::InfiniteDuration();
};

// Governs the calls of one kind to one peer. Pauses double from the first to the longest. Patience
// counts from the first failure since the peer was last reached: a call may have been parked for
// long before that. The peer was reached when it answered, also with RESOURCE_EXHAUSTED (no room
// now). So it was when a parked call failed later than an attempt to connect would have. Times are
// of one monotonic clock. Thread-compatible.
class RetryPolicy {
 public:
  explicit RetryPolicy(CallKind kind, const RetryOptions& options = {})
      : kind_(kind), options_(options) {}

  void OnSuccess();
  // The peer answered, but not as wanted: a pause, and patience starts anew.
  void OnRefusal(absl::Duration now);
  // Returns the pause before the call is made again; nullopt: give up, with the failure's status.
  // Calls that fail within a pause were in flight together: they are one failure.
  std::optional<absl::Duration> OnFailure(const absl::Status& failure, absl::Duration now);

  // Returns `failure`, with the time for which the call was tried if that is why it is given up.
  absl::Status GivenUp(const absl::Status& failure) const;

  // No call should be made before this time.
  absl::Duration not_before() const { return not_before_; }
  // Time since the first failure after the last answer; zero when the last call was answered.
  absl::Duration FailingFor(absl::Duration now) const;

 private:
  void Pause(absl::Duration now);

  CallKind kind_;
  RetryOptions options_;
  std::optional<absl::Duration> failing_since_;
  absl::Duration pause_;
  absl::Duration not_before_ = -absl::InfiniteDuration();
};

}  // namespace lockstep
