// The longest time without a step, from what the ps say that they have closed. Pure: time is an
// argument.
#pragma once

#include <cstdint>
#include <map>

#include "absl/time/time.h"

namespace lockstep::test {

class StepWatch {
 public:
  // Forgets pauses before `now`, not what steps were seen.
  void Begin(absl::Duration now);
  // `ps` says at `now` that it has closed so many steps. Fewer than before: it has gone back, which
  // is no step.
  void OnAnswer(absl::Duration now, int ps, int64_t closed_steps);

  // Since Begin, the time that runs included.
  absl::Duration LongestPause(absl::Duration now) const;
  // Answers with a new step since Begin.
  int num_advances() const { return num_advances_; }

 private:
  std::map<int, int64_t> closed_;  // by ps
  absl::Duration last_;            // of Begin, or of a new step since
  absl::Duration longest_;
  int num_advances_ = 0;
};

}  // namespace lockstep::test
