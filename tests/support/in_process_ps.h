// PsControl and PsData by calling a shard directly: no network, no thread of its own. Callbacks
// come on the thread whose call made them possible. For tests that want the protocol without gRPC.
#pragma once

#include <memory>

#include "common/base/ids.h"
#include "common/client/ps_control.h"
#include "ps/service/command_watch.h"
#include "ps/service/job_finisher.h"
#include "ps/shard/shard.h"
#include "tests/support/ps_data.h"

namespace lockstep {

// `shard` outlives them, and so do `watch` and `finisher`. Their destruction cancels what is
// parked.
//
// `watch` may be null: then leases do not end. `finisher`, of `shard` and `watch`, is that of all
// controls of a ps: each refuses chiefs once one of them was told of the end. Null: that of this
// control, the only one of its ps.
std::unique_ptr<PsControl> MakeInProcessControl(ps::Shard* shard, Incarnation incarnation,
                                                ps::CommandWatch* watch = nullptr,
                                                ps::JobFinisher* finisher = nullptr);
// `owns_payloads`: the shard gets the bytes of a push in a message that it may keep, as over gRPC;
// otherwise they last for the call.
std::unique_ptr<PsData> MakeInProcessData(ps::Shard* shard, bool owns_payloads = false);

}  // namespace lockstep
