// Errors for broken rules of the job file. They name the path of the field, the expected and the
// actual value, and the remedy.
#pragma once

#include <cstdint>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"

namespace lockstep {

// The highest count: oneDNN, gRPC and protobuf count with 32 bits.
inline constexpr int64_t kMaxCount = std::numeric_limits<int32_t>::max();

inline absl::Status Broken(absl::string_view field, absl::string_view problem,
                           absl::string_view remedy) {
  return absl::InvalidArgumentError(absl::StrCat(field, ": ", problem, ". Remedy: ", remedy));
}

template <typename Number>
absl::Status OutOfRange(absl::string_view field, absl::string_view expected, Number got) {
  return Broken(field, absl::StrCat("expected ", expected, ", got ", got),
                absl::StrCat("set it to ", expected));
}

// least <= value <= most.
inline absl::Status CheckCount(absl::string_view field, int64_t value, int64_t least,
                               int64_t most = kMaxCount) {
  if (value >= least && value <= most) return absl::OkStatus();
  return OutOfRange(field, absl::StrCat("a number from ", least, " to ", most), value);
}

}  // namespace lockstep
