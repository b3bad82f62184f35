// From strategy { replicated {} } of a job to the reduction that its workers make each step.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "proto/job.pb.h"
#include "worker/cache/variable_layout.h"
#include "worker/collective/group_reducer.h"

namespace lockstep::worker {

struct ChosenReduction {
  GroupReduction reduction;
  std::string name;    // "multi_worker_all_reduce xring", for log and status
  std::string reason;  // why, where the job does not say: a sentence without its dot
  std::vector<std::string> warnings;
};

// What a step reduces: the trained variables in the layout's order, then the trained tables in the
// same, of which this is one participant's share (RowShare). `most_rows`: by variable, of tables
// alone it is read.
std::vector<TensorSpec> ReducedTensors(const VariableLayout& layout,
                                       absl::Span<const int64_t> most_rows = {});

// Over the towers, on CPUs, of a group of this shape: of `tensors` dense ones are reduced, and the
// shares of tables gathered. INVALID_ARGUMENT naming the field: a mode or
// op that needs GPUs; what the chief should have refused (CheckStrategy) and cannot be done.
absl::StatusOr<ChosenReduction> ReductionOf(const StrategyDef::Replicated& replicated,
                                            const Topology& topology,
                                            std::vector<TensorSpec> tensors);

}  // namespace lockstep::worker
