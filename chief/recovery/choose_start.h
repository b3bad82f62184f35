// Where a chief that starts begins, from what it finds at the shards. Pure.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "chief/recovery/take_command.h"
#include "proto/ps.pb.h"

namespace lockstep::chief {

enum class StartPoint {
  kTakeOver,     // at the shards as they are; FindProgress says whether they belong together
  kAsSpecified,  // at the spec's checkpoint, or at the initial values
  kDone,         // nowhere: the checkpoint of the last step exists, and the shards do not say more
  kPlanAfresh,   // kSucceed: the spec is too old
};

// From what each shard answers to GetView. Under kResume a shard counts as trained when its step is
// not 0: it may have been restored there, which is as good; and shards that do not belong together
// start as specified, all of them.
//
// FAILED_PRECONDITION under kBegin: a beginning would bury the checkpoints of an earlier run.
absl::StatusOr<StartPoint> ChooseStart(const RecoverySpec& spec,
                                       const std::vector<SetViewReply>& seen);

// The spec with which the chief starts so: without its checkpoint where it takes over, and in an
// epoch of its own where shards have variables that are not the spec's.
RecoverySpec RecoverySpecFor(StartPoint start, RecoverySpec spec,
                             const std::vector<SetViewReply>& seen);

}  // namespace lockstep::chief
