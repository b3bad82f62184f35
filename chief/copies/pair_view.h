// What two ps that were asked for their views make of a shard. Pure.
//
// The one that serves publishes nothing that its copy lacks. A chief lets the copy serve, or the
// other one go on alone, only after both have accepted its own term and said that the copy lacks
// nothing (tests/model searches what follows from that). Where that cannot be known, the shard
// counts as lost, and the job goes back to its checkpoint.
#pragma once

#include <array>

#include "absl/status/statusor.h"
#include "chief/copies/place.h"
#include "proto/ps.pb.h"

namespace lockstep::chief {

enum class PairState {
  kUnknown,  // nobody has looked yet, or what was seen is over
  kPair,     // one serves, and waits for its copy
  kAlone,    // one serves without a copy, or with one that awaits its state
  kLost,     // nobody does under this chief: the job goes back to a checkpoint, or another commands
};

struct PairView {
  PairState state = PairState::kUnknown;
  PlaceIndex serving = kHome;
  SetViewReply reply;  // for a chief that takes command
};

// By PlaceIndex: answers to GetView, or why there is none.
using PlaceAnswers = std::array<absl::StatusOr<SetViewReply>, kNumPlaces>;

// An error: nobody can say yet; ask again. A shard of which one place has lost the variables has
// none, unless the other one serves it alone. A place that was asked before it became the copy
// looks so, too: ask both again before the shard is taken for lost.
absl::StatusOr<PairView> JudgePair(const PlaceAnswers& answers);

}  // namespace lockstep::chief
