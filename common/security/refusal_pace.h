// RefusalPace limits the refusals that a caller is answered in a second. Further answers are held,
// so that no caller keeps a process busy with refusals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "absl/container/flat_hash_map.h"
#include "absl/status/status.h"
#include "absl/strings/string_view.h"
#include "absl/time/time.h"

namespace lockstep::security {

// Returns whether an answer with this code is a refusal: the caller has no right to the call, or
// its message is at fault. All other codes belong to a job at work: a stale term, epoch or
// incarnation (ABORTED), a ps without variables (FAILED_PRECONDITION), memory that is not shared
// (NOT_FOUND), a pull in memory that must come as bytes (OUT_OF_RANGE), a spent budget
// (RESOURCE_EXHAUSTED).
bool IsRefusal(absl::StatusCode code);

// A token bucket for each caller. Has no clock of its own. Thread-compatible.
class RefusalPace {
 public:
  // This many refusals are answered at once, then one each kInterval. Our own processes end at
  // their first refusal, after at most some parallel calls with one reason.
  static constexpr int kAtOnce = 20;
  static constexpr absl::Duration kInterval = absl::Milliseconds(100);
  // A refused message counts once more for each kBytesOfRefusal: receiving and parsing 1 MiB takes
  // about as long as 8 small calls.
  static constexpr uint64_t kBytesOfRefusal = uint64_t{128} << 10;
  // Below the shortest deadline of a call, 5 s, so that a waiting caller gets the reason.
  static constexpr absl::Duration kMaxHold = absl::Seconds(4);
  // Callers beyond these share one bucket.
  static constexpr size_t kMaxCallers = 1024;

  // Returns how long the answer to a refused call is held from `now` on, at most kMaxHold. The call
  // had a message of `message_bytes`; 0: it was not read. `now` never goes back.
  absl::Duration Hold(absl::string_view caller, uint64_t message_bytes, absl::Duration now);

  size_t num_callers() const { return paid_at_.size(); }

 private:
  absl::Duration* Find(absl::string_view caller, absl::Duration now);

  // The time at which the bucket of a caller is full again.
  absl::flat_hash_map<std::string, absl::Duration> paid_at_;
  absl::Duration paid_at_of_others_ = -absl::InfiniteDuration();
  absl::Duration next_sweep_ = -absl::InfiniteDuration();
};

}  // namespace lockstep::security
