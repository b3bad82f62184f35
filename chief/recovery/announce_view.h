// Taking command of all shards: the step shard first. Of two chiefs that claim one term, that one
// commands whom the step shard has accepted; the other one changes no shard.
#pragma once

#include <vector>

#include "chief/loop/executor.h"
#include "chief/sync/shard_calls.h"
#include "common/client/ps_control.h"

namespace lockstep::chief {

enum class AnnounceTo { kStepShard, kOthers };

// The SetView of these shards, each with its index; the shards that are not meant answer at once.
// What they answer is in `states`, by shard, which outlives the calls.
ShardCalls::Call AnnounceView(AnnounceTo to, SetViewRequest view, std::vector<PsControl*> shards,
                              Executor* executor, std::vector<SetViewReply>* states);

}  // namespace lockstep::chief
