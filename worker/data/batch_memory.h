// Checks that the batches of a replica fit into its memory.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "worker/data/example_store.h"
#include "worker/data/pipeline.h"

namespace lockstep::worker {

// The job fields that an error names.
struct BatchFields {
  std::string batch = "batch_per_tower (or global_batch)";
  std::string remedy = "lower it or data.prefetch";
};

// Counts the batches of all towers for the step in use, the `ahead` prepared steps and the copied
// batches. Adds the `orders` of the examples that pipelines keep. INVALID_ARGUMENT: more examples
// than any step can have. RESOURCE_EXHAUSTED as CheckRoomFor.
absl::Status CheckBatchMemory(const ExampleStore& store, const PipelineOptions& options,
                              int64_t ahead, int64_t orders, const BatchFields& fields);

}  // namespace lockstep::worker
