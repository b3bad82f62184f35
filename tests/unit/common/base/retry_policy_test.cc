#include "common/base/retry_policy.h"

#include <catch2/catch.hpp>

#include "common/base/job_over.h"

namespace lockstep {
namespace {

constexpr absl::Duration kStart = absl::Seconds(1000);
const absl::Status kAway = absl::UnavailableError("connection refused");
const absl::Status kLate = absl::DeadlineExceededError("no answer");
const absl::Status kFull = absl::ResourceExhaustedError("no room now");
const absl::Status kCorrupt = absl::DataLossError("changed on its way");
const absl::Status kOver = JobOverError();
const absl::Status kCancelled = absl::CancelledError("calls to ps 0 were cancelled");

RetryOptions Patient(absl::Duration patience) { return {.patience = patience}; }

TEST_CASE("what may pass by itself is retried, a corrupt message and a job that is over by kind") {
  for (const CallKind kind : {CallKind::kPlain, CallKind::kParked, CallKind::kCommand}) {
    for (const absl::Status& status : {kAway, kLate, kFull}) CHECK(IsRetryable(status, kind));
    for (const absl::Status& status :
         {absl::OkStatus(), absl::InvalidArgumentError(""), absl::FailedPreconditionError(""),
          absl::AbortedError(""), absl::InternalError(""), absl::NotFoundError(""), kCancelled}) {
      CHECK_FALSE(IsRetryable(status, kind));
    }
    CHECK(IsRetryable(kOver, kind) == (kind == CallKind::kCommand));
    CHECK(IsRetryable(kCorrupt, kind) == (kind != CallKind::kCommand));
  }
  RetryPolicy policy(CallKind::kPlain);
  CHECK_FALSE(policy.OnFailure(kOver, kStart).has_value());
}

TEST_CASE("patience counts from the first failure, however long the calls before were parked") {
  RetryPolicy policy(CallKind::kParked, Patient(absl::Seconds(6)));
  absl::Duration now = kStart;
  for (int i = 0; i < 5; ++i) {
    now += absl::Seconds(60);
    CHECK(policy.OnFailure(kLate, now) == absl::ZeroDuration());
  }
  CHECK(policy.FailingFor(now) == absl::ZeroDuration());
  now += absl::Seconds(50);
  CHECK(policy.OnFailure(kAway, now).has_value());
  CHECK(policy.FailingFor(now + absl::Seconds(5)) == absl::Seconds(5));
  CHECK(policy.OnFailure(kAway, now + absl::Seconds(5)).has_value());
  CHECK_FALSE(policy.OnFailure(kAway, now + absl::Seconds(6)).has_value());
  CHECK(policy.GivenUp(kAway) == absl::UnavailableError("connection refused (tried for 6s)"));
  CHECK(policy.GivenUp(absl::AbortedError("fenced")) == absl::AbortedError("fenced"));
}

TEST_CASE("an answer lets patience start anew, also one that there is no room now") {
  RetryPolicy policy(CallKind::kPlain, Patient(absl::Seconds(6)));
  absl::Duration now = kStart;
  for (int i = 0; i < 10; ++i) {
    CHECK(policy.OnFailure(kAway, now).has_value());
    now += absl::Seconds(5);
    if (i % 2 == 0) {
      policy.OnSuccess();
    } else {
      CHECK(policy.OnFailure(kFull, now).has_value());
    }
    now += absl::Seconds(5);
  }
  for (int i = 0; i < 100; ++i) {
    now += absl::Seconds(5);
    CHECK(policy.OnFailure(kFull, now).has_value());
  }
}

TEST_CASE("a plain call that is not answered in time is a failure") {
  RetryPolicy policy(CallKind::kPlain, Patient(absl::Seconds(6)));
  CHECK(policy.OnFailure(kLate, kStart) == absl::Milliseconds(20));
  CHECK_FALSE(policy.OnFailure(kLate, kStart + absl::Seconds(7)).has_value());
}

TEST_CASE("pauses double up to the longest, and begin anew after an answer") {
  RetryPolicy policy(CallKind::kPlain, {.first_pause = absl::Milliseconds(100),
                                        .longest_pause = absl::Milliseconds(300)});
  absl::Duration now = kStart;
  for (const int pause : {100, 200, 300, 300}) {
    CHECK(policy.OnFailure(kAway, now) == absl::Milliseconds(pause));
    CHECK(policy.not_before() == now + absl::Milliseconds(pause));
    now = policy.not_before();
  }
  policy.OnSuccess();
  CHECK(policy.not_before() <= now);
  CHECK(policy.OnFailure(kAway, now) == absl::Milliseconds(100));
}

TEST_CASE("calls that fail together are one failure") {
  RetryPolicy policy(CallKind::kPlain);
  CHECK(policy.OnFailure(kAway, kStart) == absl::Milliseconds(20));
  CHECK(policy.OnFailure(kAway, kStart + absl::Milliseconds(5)) == absl::Milliseconds(15));
  CHECK(policy.OnFailure(kAway, kStart + absl::Milliseconds(20)) == absl::Milliseconds(40));
}

TEST_CASE("a parked call that lasted had reached the peer: the next failure is the first again") {
  RetryPolicy policy(CallKind::kParked, Patient(absl::Seconds(6)));
  CHECK(policy.OnFailure(kAway, kStart).has_value());
  CHECK(policy.OnFailure(kAway, kStart + absl::Seconds(5)).has_value());
  const absl::Duration cut = kStart + absl::Seconds(14);
  CHECK(policy.OnFailure(kAway, cut) == absl::Milliseconds(20));
  CHECK(policy.FailingFor(cut) == absl::ZeroDuration());
  CHECK(policy.OnFailure(kAway, cut + absl::Seconds(5)).has_value());
  CHECK_FALSE(policy.OnFailure(kAway, cut + absl::Seconds(10)).has_value());
}

}  // namespace
}  // namespace lockstep
