// Which of the two ps of a shard serves it, and what is known of each. Pure.
//
// The primary serves while both are there. A chief lets the copy serve, or the primary go on
// alone, only after both have accepted its own term and said that the copy lacks nothing; it does
// one of the two at most once in an epoch (tests/model searches what follows from that). Where that
// cannot be known, the shard counts as lost, and the job goes back to its checkpoint.
#pragma once

#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "proto/ps.pb.h"

namespace lockstep::chief {

enum class PairState {
  kUnknown,  // nobody has looked yet, or what was seen is over
  kPair,     // the primary serves, and waits for its copy
  kAlone,    // the primary serves without a copy
  kMoved,    // the copy serves
  kLost,     // nobody does: the job goes back to a checkpoint
};

// What two ps that were asked what they are make of a shard.
struct PairView {
  PairState state = PairState::kUnknown;
  SetViewReply reply;  // for a chief that takes command
};

// `primary` and `copy`: their answers to GetView, or why there is none. An error: nobody can say
// yet; ask again. A shard of which one has lost the variables has none, unless the other serves it
// alone.
absl::StatusOr<PairView> JudgePair(const absl::StatusOr<SetViewReply>& primary,
                                   const absl::StatusOr<SetViewReply>& copy);

// What the chief has seen of one of the two since its last answer.
class MemberHealth {
 public:
  void Answered(absl::Duration now);
  void Failed(const absl::Status& failure, absl::Duration now);
  // It was started again, or refuses what only a lost one refuses.
  void Lost(const absl::Status& why);

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
