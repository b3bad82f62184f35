// Chooses the start point of a chief from the views that the shards report. Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "chief/recovery/take_command.h"
#include "proto/ps.pb.h"

namespace lockstep::chief {

enum class StartPoint {
  kTakeOver,     // at the shards as they are; FindProgress checks that they belong together
  kAsSpecified,  // at the spec's checkpoint, or at the initial values
  kDone,         // nowhere: the checkpoint of the last step exists, and no shard is to be used
  kPlanAfresh,   // kSucceed: the spec is too old
};

// True under kSucceed and kResume if all shards have variables of one epoch, and only their steps
// do not belong together. Either they are apart, or a live chief made steps while they were asked.
bool AreStepsApart(const RecoverySpec& spec, const std::vector<SetViewReply>& seen);

// `seen`: the shards' answers to GetView. `moves`: steps were made between these answers and
// earlier ones. Steps that are apart then prove nothing: TakeCommand ends them, and FindProgress
// judges. Under kResume a shard counts as trained if its step is not 0; a restored step is as good
// as a trained one. Under kResume, if the shards do not belong together, all of them start as
// specified.
//
// FAILED_PRECONDITION under kBegin: the folder has checkpoints of an earlier run.
absl::StatusOr<StartPoint> ChooseStart(const RecoverySpec& spec,
                                       const std::vector<SetViewReply>& seen, bool moves = false);

// Returns the spec for this start. It has no checkpoint if the chief takes over. It has a new epoch
// if shards have variables that are not the spec's, or if one of the two ps of a shard lacks them,
// and a chief that does not resume loses no step by that.
RecoverySpec RecoverySpecFor(StartPoint start, RecoverySpec spec,
                             const std::vector<SetViewReply>& seen);

}  // namespace lockstep::chief
