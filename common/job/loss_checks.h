// What the losses of a model ask of the job that trains it.
#pragma once

#include "absl/status/status.h"
#include "common/model/graph.h"
#include "proto/job.pb.h"

namespace lockstep {

// INVALID_ARGUMENT naming the field and the remedy: nothing to train, several losses, or what needs
// labels where no loss takes any.
absl::Status CheckLosses(const JobDef& job, const ModelGraph& graph);

}  // namespace lockstep
