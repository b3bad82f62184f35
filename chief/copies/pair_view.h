// Derives the state of a shard from the views that its two ps report. Pure.
//
// The serving ps publishes nothing that its copy lacks. A chief lets one of the two serve alone
// only after both have accepted its own term and reported that the copy lacks nothing. tests/model
// checks the consequences. If the chief cannot know that, the shard counts as lost, and the job
// goes back to its checkpoint.
#pragma once

#include <array>

#include "absl/status/statusor.h"
#include "chief/copies/place.h"
#include "proto/ps.pb.h"

namespace lockstep::chief {

enum class PairState {
  kUnknown,  // the places were not asked yet, or their answers are outdated
  kPair,     // one serves, and waits for its copy
  kAlone,    // one serves without a copy, or with one that awaits its state
  kLost,     // none serves for this chief: the job goes back to a checkpoint, or another commands
};

struct PairView {
  PairState state = PairState::kUnknown;
  PlaceIndex serving = kHome;
  // For a chief that takes command. Without variables, `awaits_state` says that a place has some of
  // this epoch, and the steps are those of that place; where both have some, the higher ones.
  SetViewReply reply;
};

// By PlaceIndex: the answer to GetView, or the error of the call.
using PlaceAnswers = std::array<absl::StatusOr<SetViewReply>, kNumPlaces>;

// An error: the state is not known yet; ask again. If one place has lost the variables, the shard
// has none, unless the other place serves it alone. A place that was asked before it became the
// copy looks the same. Ask both again before the shard counts as lost.
absl::StatusOr<PairView> JudgePair(const PlaceAnswers& answers);

}  // namespace lockstep::chief
