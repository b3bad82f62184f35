// PlaceHealth decides whether one of the two places of a shard is lost, from its answers and
// failures. Pure: time is an argument.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace lockstep::chief {

class PlaceHealth {
 public:
  void Answered(absl::Duration now);
  void Failed(const absl::Status& failure, absl::Duration now);
  // The place was started again, or refuses a call that only a lost place refuses.
  void Lost(const absl::Status& why);

  // Permanent: the place has answered without the variables.
  bool HasLostVariables() const { return is_lost_; }
  // Returns the reason if the place is lost: it has been unreachable for `kRefusal`, or silent for
  // `patience`. nullopt: it is not lost. `awaits_answer`: a newer question than the one that failed
  // is under way, so the place may be reachable again: a slow answer is no refusal.
  std::optional<std::string> WhyLost(absl::Duration now, absl::Duration patience,
                                     bool awaits_answer) const;

  // A killed ps refuses connections at once; an overloaded one refuses some.
  static constexpr absl::Duration kRefusal = absl::Milliseconds(300);

 private:
  absl::Duration answered_;
  std::optional<absl::Duration> failing_since_;
  absl::Status failure_;
  bool is_lost_ = false;
};

}  // namespace lockstep::chief
