// A ps calls nobody: until the chief calls, this decides what to say and when to give up. Pure.
//
// A chief first asks every ps what it has, and goes on when all have answered. Meanwhile it asks
// those again that are there: so they know that it is up, and that another ps is missing.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lockstep::ps {

class ChiefWatchdog {
 public:
  struct Line {
    std::string text;
    bool is_warning = true;
  };

  // `chief`: its "host:port". Times are of one monotonic clock.
  ChiefWatchdog(std::string chief, absl::Duration start, absl::Duration start_timeout);

  // The chief has asked what this ps has.
  void Asked(absl::Duration now);
  // For the log, now and then: nullopt when there is nothing to say yet.
  std::optional<Line> Message(absl::Duration now);
  // UNAVAILABLE when nothing was heard of the chief for the start timeout.
  absl::Status Check(absl::Duration now) const;

 private:
  bool IsChiefUp(absl::Duration now) const;

  const std::string chief_;
  const absl::Duration start_;
  const absl::Duration start_timeout_;
  std::optional<absl::Duration> last_asked_;
  absl::Duration next_message_;
};

}  // namespace lockstep::ps
