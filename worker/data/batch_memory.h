// Whether the batches of a replica are of a size that it can hold.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "worker/data/example_store.h"
#include "worker/data/pipeline.h"

namespace lockstep::worker {

// Of the batches of all towers, with `ahead` steps prepared beside the one in use.
// INVALID_ARGUMENT: more examples than any step can have. RESOURCE_EXHAUSTED as CheckBufferMemory.
absl::Status CheckBatchMemory(const ExampleStore& store, const PipelineOptions& options,
                              int64_t ahead);

}  // namespace lockstep::worker
