// Checks the losses of a model against the job that trains it, and assigns variables to losses.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "common/model/graph.h"
#include "proto/job.pb.h"

namespace lockstep {

// INVALID_ARGUMENT naming the field and the remedy: nothing to train, several losses in a job
// without `losses`, or a field that needs labels where no loss takes any.
absl::Status CheckLosses(const JobDef& job, const ModelGraph& graph);

// Returns for each variable of the graph the job's loss that trains it, counted from 1. 0: none, as
// for frozen variables, for the training loss, and in a job without `losses`. INVALID_ARGUMENT
// naming the loss and the remedy: a loss that the model lacks or nobody trains, a variable of two
// losses or of none, and one that its loss does not depend on.
absl::StatusOr<std::vector<uint32_t>> AssignLosses(const JobDef& job, const ModelGraph& graph);

// The nodes of the layers that an entry of the job's losses names, ascending. Errors as above.
absl::StatusOr<std::vector<int>> LossNodesOf(const LossDef& loss, const ModelGraph& graph);

}  // namespace lockstep
