// Numbers as people read them: the one way in which log lines, messages and tables write counts,
// bytes, durations and losses. Pure, thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep {

// "12,345".
std::string WithCommas(uint64_t number);

// "1 thread", "2 threads", "1,200 examples". The plural is the singular with an "s" unless it is
// given.
std::string CountText(uint64_t count, absl::string_view singular, absl::string_view plural = "");

// "512 B", "1.2 MiB".
std::string BytesText(uint64_t bytes);

// For tables and progress lines: "0.4 s", "12 s", "3:05", "1:02:03". "?" for what is negative,
// infinite or not a number.
std::string SecondsText(double seconds);

// For sentences: "0.4 s", "120 s", "15 min", "3.5 h". "?" as above.
std::string DurationText(absl::Duration duration);

// Of things per second: "0.25", "12.3", "12,345". "?" as above.
std::string RateText(double per_second);

// "0.1235", "512.3000", "7.386e+14", "inf", "nan" (whatever its sign).
std::string LossText(double loss);

}  // namespace lockstep
