// BatchPlan says how a list of tensors is reduced: the vectors made of them, and each vector's
// schedule.
//
// Across processes, each step: Pack the packs of every local tower; run a Participant per vector
// and local tower, of all vectors at the same time or in order; Unpack. All processes make the same
// plan of the same tensors, so compare the tensors before the first step.
#pragma once

#include <vector>

#include "absl/status/statusor.h"
#include "absl/types/span.h"
#include "worker/collective/make_schedule.h"
#include "worker/collective/packers.h"
#include "worker/collective/schedule.h"

namespace lockstep::worker {

// Immutable.
struct BatchPlan {
  PackingPlan packing;
  std::vector<Schedule> schedules;             // one for each vector of `packing`
  std::vector<ReductionAlgorithm> algorithms;  // likewise; the messages of the vector name it
};

// Vectors of `packing` are reduced by one algorithm; they take turns by their positions. The
// schedules' index and length are those of the vectors. INVALID_ARGUMENT as MakeSchedule.
absl::StatusOr<BatchPlan> MakeBatchPlan(const PackingPlan& packing, ScheduleSpec spec);

// Adds a vector for each tensor from number `first` on; these are gathered, not packed.
absl::Status AddGathers(const Topology& topology, absl::Span<const TensorSpec> tensors, int first,
                        BatchPlan* plan);

// Reduces in one address space. tensors[rank][i]: tensor i of participant `rank`. It becomes the
// sum, or the result of MEAN with `divisor`. Allocates memory for the packs.
void RunBatchInMemory(const BatchPlan& plan,
                      absl::Span<const std::vector<MutableTensorView>> tensors, int divisor);

}  // namespace lockstep::worker
