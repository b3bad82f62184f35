// The error of a ps that is to save a version which it keeps no more: not with its slots, and it
// has taken gradients since. Callers tell it from an error of the disk.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lockstep {

inline constexpr absl::string_view kNotKept = " is not kept with its slots";

// FAILED_PRECONDITION with `why`.
inline absl::Status NotKeptError(int64_t version, absl::string_view why) {
  return absl::FailedPreconditionError(absl::StrCat("version ", version, kNotKept, ", and ", why));
}

// True if `status` is that answer, also after it has crossed the wire and been annotated.
inline bool IsNotKept(const absl::Status& status) {
  return absl::IsFailedPrecondition(status) && absl::StrContains(status.message(), kNotKept);
}

}  // namespace lockstep
