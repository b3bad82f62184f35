// Ends a job through its chief, for tools. Blocks.
#pragma once

#include <string>

#include "absl/status/statusor.h"
#include "common/rpc/credentials.h"
#include "proto/job_control.pb.h"

namespace lockstep {

// Returns when the job has ended. DEADLINE_EXCEEDED: its save takes longer than a minute; the same
// call again waits on. IsChiefStopping: the chief was about to exit. `credentials` may be null.
absl::StatusOr<StopReply> StopJob(const std::string& address, const rpc::Credentials* credentials);

}  // namespace lockstep
