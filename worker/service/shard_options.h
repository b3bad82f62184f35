// Makes from the job the options with which a worker's trainers call the parameter servers.
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
