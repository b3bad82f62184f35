// What the chief's calls do to its lease at the step shard.
#pragma once

#include "absl/status/statusor.h"
#include "proto/ps.pb.h"
#include "ps/service/command_watch.h"
#include "ps/shard/shard.h"

namespace lockstep::ps {

// The shard has accepted the view: of the step shard it begins or renews the chief's lease.
void NoteView(const SetViewRequest& view, CommandWatch* watch);

// Errors of Shard::TermOf. INVALID_ARGUMENT: an end that is none.
absl::StatusOr<RenewLeaseReply> HandleRenewLease(const Shard& shard,
                                                 const RenewLeaseRequest& request,
                                                 CommandWatch* watch);

}  // namespace lockstep::ps
