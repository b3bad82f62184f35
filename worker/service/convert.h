// Converts the worker's state to fields of its messages to the chief.
#pragma once

#include "common/base/group_view_id.h"
#include "proto/chief.pb.h"

namespace lockstep::worker {

// `failed`: GroupSource::failed_view.
void SetFailedView(const GroupViewId& failed, HeartbeatRequest* request);

}  // namespace lockstep::worker
