// Keeps what peers can cause from filling the log.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::log {

// Lets a few lines of one kind pass at once and then one each second. Not thread-safe.
class Throttle {
 public:
  static constexpr int kBurst = 10;

  // `burst`: lines that pass at once.
  explicit Throttle(int burst = kBurst) : burst_(burst) {}

  // The line to write for `message` at the monotonic time `now`; nullopt: leave it out. A line
  // after others that were left out says how many.
  std::optional<std::string> Admit(absl::string_view message, absl::Duration now);

 private:
  static constexpr absl::Duration kInterval = absl::Seconds(1);

  const int burst_;
  int tokens_ = burst_;
  absl::Duration refilled_ = -absl::InfiniteDuration();
  int64_t left_out_ = 0;
};

}  // namespace lockstep::log
