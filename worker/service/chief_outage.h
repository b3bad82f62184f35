// What a worker says of a chief that it cannot reach: that it is away, from time to time, and that
// it is back. Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::worker {

// Thread-compatible. Times are of one monotonic clock.
class ChiefOutage {
 public:
  // A call was not answered, of a chief that has not answered for `failing_for`. The line to log,
  // if it is time for one.
  std::optional<std::string> OnFailure(absl::string_view reason, absl::Duration failing_for,
                                       absl::Duration now);
  // It answered. The line to log where the last one said that it was away.
  std::optional<std::string> OnContact(absl::Duration now);

 private:
  std::optional<absl::Duration> told_since_;  // the outage that has been logged began then
  absl::Duration next_report_ = -absl::InfiniteDuration();
};

}  // namespace lockstep::worker
