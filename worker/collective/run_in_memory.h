// All participants of a schedule in one address space, on the calling thread: every vector becomes
// the sum of all, or their mean. For the towers of one process on the host.
#pragma once

#include "absl/types/span.h"
#include "common/tensor/tensor.h"
#include "worker/collective/schedule.h"

namespace lockstep::worker {

// `vectors` by rank, all of the schedule's length and one dtype with element math (CHECK). A total
// is divided by `divisor`: 1 for a sum. Messages are pointers: elements are read where they lie.
void RunInMemory(const Schedule& schedule, absl::Span<const MutableTensorView> vectors,
                 int divisor);

}  // namespace lockstep::worker
