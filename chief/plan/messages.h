// The plan as ps, workers and checkpoints are told it.
#pragma once

#include "chief/plan/plan.h"
#include "common/checkpoint/checkpoint.h"
#include "proto/chief.pb.h"
#include "proto/ps.pb.h"

namespace lockstep::chief {

// Without the command.
CreateVariablesRequest ToCreateVariables(const JobPlan& plan);

// What every worker is told: job, model, placement, counts. Without job id, term, epoch and start.
RegisterTaskReply ToRegistration(const JobPlan& plan);

// Without step and shards.
Manifest ToManifest(const JobPlan& plan, Epoch epoch, const CheckpointOrigin& origin);

}  // namespace lockstep::chief
