// A ps calls nobody: until the chief calls, this decides what to say and when to give up. Pure.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lockstep::ps {

class ChiefWait {
 public:
  // `chief`: its "host:port". Times are of one monotonic clock.
  ChiefWait(std::string chief, absl::Duration start, absl::Duration start_timeout);

  // For the log, now and then: nullopt when there is nothing to say yet.
  std::optional<std::string> Message(absl::Duration now);
  // UNAVAILABLE when the start timeout is over.
  absl::Status Check(absl::Duration now) const;

 private:
  const std::string chief_;
  const absl::Duration start_;
  const absl::Duration start_timeout_;
  absl::Duration next_message_;
};

}  // namespace lockstep::ps
