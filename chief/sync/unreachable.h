// How long a chief waits for a shard that it cannot reach. Pure.
#pragma once

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace lockstep::chief {

// The remedy when a shard is lost for good.
inline constexpr char kStartAgain[] = "start the cluster again, the chief with --resume";

// `problem` has kept the chief from a shard for `time`; OK: nothing has. UNAVAILABLE, for the end
// of the job, from `patience` on.
inline absl::Status CheckPatience(const absl::Status& problem, absl::Duration time,
                                  absl::Duration patience) {
  if (problem.ok() || time < patience) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      problem.message(), ", for ", absl::ToInt64Seconds(time), " s. Remedy: ", kStartAgain));
}

}  // namespace lockstep::chief
