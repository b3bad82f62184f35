#include "deploy/cli/watch_failure.h"

#include "absl/strings/str_cat.h"

namespace lockstep::deploy {

absl::StatusOr<WatchFailure> ExplainWatchFailure(const std::string& address,
                                                 const absl::Status& failure) {
  // It is stopped, the machine is busy, or the network is cut: all of them may pass.
  if (absl::IsDeadlineExceeded(failure)) {
    return WatchFailure{.line = absl::StrCat(failure.message(), "; asking again")};
  }
  // A process that ends cancels the calls that it has not answered.
  if (absl::IsUnavailable(failure) || absl::IsCancelled(failure)) {
    return WatchFailure{
        .line = absl::StrCat(address, " has ended, or cannot be reached: ", failure.message()),
        .has_ended = true};
  }
  return failure;
}

}  // namespace lockstep::deploy
