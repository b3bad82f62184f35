// A shard that the chief cannot reach, and how long it waits for that. Pure.
#pragma once

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"

namespace lockstep::chief {

// Why a shard cannot be reached, and since when; OK: it can.
struct ShardProblem {
  absl::Status status;
  absl::Duration since;  // of the chief's clock; of no meaning where `status` is OK

  bool ok() const { return status.ok(); }
  // Another error of a shard that was out of reach before: `since` stays.
  void RecordError(absl::Status error, absl::Duration now) {
    if (status.ok()) since = now;
    status = std::move(error);
  }
};

// The remedy when a shard is lost for good.
inline constexpr char kStartAgain[] = "start the cluster again, the chief with --resume";

// UNAVAILABLE, for the end of the job, where the problem has lasted for `time`, and that is
// `patience` or more.
inline absl::Status CheckPatience(const ShardProblem& problem, absl::Duration time,
                                  absl::Duration patience) {
  if (problem.ok() || time < patience) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat(
      problem.status.message(), ", for ", absl::ToInt64Seconds(time), " s. Remedy: ", kStartAgain));
}

}  // namespace lockstep::chief
