// A gradient, and in the same answer what its worker needs for the next step: a call instead of
// three, for gradients that are one message.
#pragma once

#include "common/base/callback.h"
#include "ps/shard/orders.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

// Push; then, if the gradient counts as a whole or the shard has closed its step, the token, and
// with it the values. `done` comes when all is there, as in Shard, or at once where
// there is nothing to wait for: after PENDING or STALE the caller has something to do. An error is
// that of the push. Token and values are best effort; DequeueToken and Pull report their errors.
// `shard` answers before it goes.
void PushPull(Shard* shard, const PushOrder& order, NextOrder next, Callback<PushPullResult> done);

}  // namespace lockstep::ps
