#include "common/base/retry_policy.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "common/base/job_over.h"

namespace lockstep {
namespace {

// An attempt to connect is given up after 5 s (common/rpc/channel.cc).
constexpr absl::Duration kLongestConnect = absl::Seconds(6);

}  // namespace

bool IsRetryable(const absl::Status& status, CallKind kind) {
  return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status) ||
         absl::IsResourceExhausted(status) ||
         (kind == CallKind::kCommand ? IsJobOver(status) : absl::IsDataLoss(status));
}

void RetryPolicy::OnSuccess() {
  failing_since_.reset();
  pause_ = absl::ZeroDuration();
  not_before_ = -absl::InfiniteDuration();
}

void RetryPolicy::OnRefusal(absl::Duration now) {
  failing_since_.reset();
  Pause(now);
}

std::optional<absl::Duration> RetryPolicy::OnFailure(const absl::Status& failure,
                                                     absl::Duration now) {
  if (!IsRetryable(failure, kind_)) return std::nullopt;
  if (absl::IsDeadlineExceeded(failure) && kind_ != CallKind::kPlain) {
    OnSuccess();
    return absl::ZeroDuration();
  }
  if (absl::IsResourceExhausted(failure)) {
    OnRefusal(now);
    return not_before_ - now;
  }
  const bool was_parked = kind_ != CallKind::kPlain && now - not_before_ > kLongestConnect;
  if (was_parked) OnSuccess();
  Pause(now);
  if (!failing_since_.has_value()) failing_since_ = now;
  if (FailingFor(now) >= options_.patience) return std::nullopt;
  return not_before_ - now;
}

absl::Status RetryPolicy::GivenUp(const absl::Status& failure) const {
  if (!IsRetryable(failure, kind_)) return failure;
  return absl::UnavailableError(absl::StrCat(failure.message(), " (tried for ",
                                             absl::FormatDuration(options_.patience), ")"));
}

absl::Duration RetryPolicy::FailingFor(absl::Duration now) const {
  return failing_since_.has_value() ? now - *failing_since_ : absl::ZeroDuration();
}

void RetryPolicy::Pause(absl::Duration now) {
  if (now < not_before_) return;
  pause_ = std::clamp(2 * pause_, options_.first_pause, options_.longest_pause);
  not_before_ = now + pause_;
}

}  // namespace lockstep
