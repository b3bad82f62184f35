// StateBudget sets the bytes of state that a primary sends to a new copy at the end of a step. The
// step takes at most 1.5 times as long as without them.
//
// Pure; not thread-safe.
#pragma once

#include <cstdint>

#include "absl/time/time.h"

namespace lockstep::ps {

class StateBudget {
 public:
  // `least_bytes`: the minimum of a part, for steps of any length.
  StateBudget(uint64_t state_bytes, uint64_t least_bytes);

  // Bytes of the next part: at most an eighth of the state, and twice the part before.
  uint64_t next_bytes() const { return next_bytes_; }
  // A step took `step` without its part, and sending the part's `bytes` took `part`.
  void OnPart(absl::Duration step, uint64_t bytes, absl::Duration part);

 private:
  const uint64_t least_bytes_;
  const uint64_t most_bytes_;
  uint64_t next_bytes_;
  absl::Duration step_;      // smoothed
  absl::Duration mebibyte_;  // smoothed: how long one takes
  bool has_measured_ = false;
};

}  // namespace lockstep::ps
