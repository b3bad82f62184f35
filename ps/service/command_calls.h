// Applies the chief's calls to its lease at the step shard.
#pragma once

#include "absl/status/statusor.h"
#include "proto/ps.pb.h"
#include "ps/service/command_watch.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

// Call it when the shard has accepted the view. At the step shard it begins or renews the lease.
void NoteView(const SetViewRequest& view, CommandWatch* watch);

// Errors of Shard::TermOf. INVALID_ARGUMENT: `end` is not valid.
absl::StatusOr<RenewLeaseReply> HandleRenewLease(const Shard& shard,
                                                 const RenewLeaseRequest& request,
                                                 CommandWatch* watch);

}  // namespace lockstep::ps
