// What the chief has seen of one of the two places of a shard since its last answer. Pure: time is
// an argument.
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
  // It was started again, or refuses what only a lost one refuses.
  void Lost(const absl::Status& why);

  // This process stood still for so long until now: it heard of nobody meanwhile.
  void ExcludeStandstill(absl::Duration standstill, absl::Duration now);

  // For good: it has answered without the variables.
  bool HasLostVariables() const { return is_lost_; }
  // Why it is lost: it cannot be reached since `kRefusal`, or has been silent for `patience`;
  // nullopt: it is not.
  std::optional<std::string> WhyLost(absl::Duration now, absl::Duration patience) const;

  // A ps that was killed refuses connections at once; one that is overloaded does so now and then.
  static constexpr absl::Duration kRefusal = absl::Milliseconds(300);

 private:
  absl::Duration answered_;
  std::optional<absl::Duration> failing_since_;
  absl::Status failure_;
  bool is_lost_ = false;
};

}  // namespace lockstep::chief
