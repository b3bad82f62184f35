// How a worker's trainers talk to the parameter servers, as the job says.
#pragma once

#include <span>
#include <string>

#include "absl/time/time.h"
#include "proto/job.pb.h"
#include "proto/ps.pb.h"
#include "worker/strategy/parameter_server/shard_group.h"

namespace lockstep::worker {

// `identity` is that of the trainer.
ShardGroupOptions ShardOptionsOf(const JobDef& job, const WorkerIdentity& identity,
                                 std::span<const std::string> ps_addresses,
                                 absl::Duration patience);

}  // namespace lockstep::worker
