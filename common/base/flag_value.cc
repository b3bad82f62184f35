#include "common/base/flag_value.h"

#include "absl/strings/str_cat.h"
#include "common/base/exit_code.h"

namespace lockstep {

absl::Status CheckNotNegative(absl::string_view flag, int64_t value, absl::string_view all) {
  if (value >= 0) return absl::OkStatus();
  return UsageError(absl::StrCat(flag, ": expected a number from 0 on, got ", value,
                                 ". Remedy: leave it out for all ", all));
}

absl::Status CheckSeconds(absl::string_view flag, double value) {
  if (value >= 0) return absl::OkStatus();
  return UsageError(absl::StrCat(flag, ": expected seconds, 0 or more, got ", value,
                                 ". Remedy: leave it out for its default"));
}

absl::Status CheckDuration(absl::string_view flag, absl::Duration value) {
  if (value >= absl::ZeroDuration()) return absl::OkStatus();
  return UsageError(absl::StrCat(flag, ": expected a duration, 0 or more, got ",
                                 absl::FormatDuration(value),
                                 ". Remedy: leave it out for its default"));
}

}  // namespace lockstep
