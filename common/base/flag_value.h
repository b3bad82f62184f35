// Values of flags that every program refuses in the same words.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep {

// Of a flag that limits how many of `all` are used, 0: all of them. INVALID_ARGUMENT with exit code
// 64 for a value below 0.
absl::Status CheckNotNegative(absl::string_view flag, int64_t value, absl::string_view all);

// Of a flag in seconds. INVALID_ARGUMENT with exit code 64 for a value below 0 and for NaN.
absl::Status CheckSeconds(absl::string_view flag, double value);

// Of a flag such as 50ms. INVALID_ARGUMENT with exit code 64 for a value below 0.
absl::Status CheckDuration(absl::string_view flag, absl::Duration value);

}  // namespace lockstep
