#include "deploy/cli/watch_failure.h"

#include "absl/strings/str_cat.h"

namespace lockstep::deploy {

absl::StatusOr<WatchFailure> ExplainWatchFailure(const std::string& address,
                                                 const absl::Status& failure, bool is_repeated) {
  // It is stopped, the machine is busy, or the network is cut: all of them may pass. A connection
  // without a sign of life is closed after a while; a process that is only stopped accepts a new
  // one.
  if (absl::IsDeadlineExceeded(failure) || (IsUnconnected(failure) && !is_repeated)) {
    return WatchFailure{.line = absl::StrCat(failure.message(), "; asking again")};
  }
  if (IsUnconnected(failure)) {
    return WatchFailure{
        .line = absl::StrCat(address, " has ended, or cannot be reached: ", failure.message()),
        .has_ended = true};
  }
  return failure;
}

// A process that ends cancels the calls that it has not answered.
bool IsUnconnected(const absl::Status& failure) {
  return absl::IsUnavailable(failure) || absl::IsCancelled(failure);
}

}  // namespace lockstep::deploy
