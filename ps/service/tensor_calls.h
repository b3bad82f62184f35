// Push, Pull, StoreVersion and PutState: from a call with tensors to the shard and back.
#pragma once

#include <memory>

#include "common/transport/tensor_call.h"
#include "proto/ps.pb.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

using PushCall = TensorCall<PushRequest, PushReply>;
using PullCall = TensorCall<PullRequest, PullReply>;
using StoreVersionCall = TensorCall<StoreVersionRequest, StoreVersionReply>;
using PutStateCall = TensorCall<PutStateRequest, PutStateReply>;

// All run on the polling thread. `shard` answers before it goes.

// Answered there; with a token and values when these are there, on whichever thread made them.
// Until then the shard keeps the call.
void HandlePush(Shard* shard, const std::shared_ptr<PushCall>& call);

// Answered when the version exists, on whichever thread made it. When the caller goes away first,
// the parked pull is withdrawn.
void HandlePull(Shard* shard, const std::shared_ptr<PullCall>& call);

// Answered there.
void HandleStoreVersion(Shard* shard, const std::shared_ptr<StoreVersionCall>& call);
void HandlePutState(Shard* shard, const std::shared_ptr<PutStateCall>& call);

}  // namespace lockstep::ps
