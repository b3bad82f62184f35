// Whether the batches of a replica are of a size that it can hold.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "worker/data/example_store.h"
#include "worker/data/pipeline.h"

namespace lockstep::worker {

// The fields of the job to change.
struct BatchFields {
  std::string batch = "batch_per_tower (or global_batch)";
  std::string remedy = "lower it or data.prefetch";
};

// Of the batches of all towers, with `ahead` steps prepared beside the one in use and those that
// are copied, and of the `orders` of the examples that pipelines keep. INVALID_ARGUMENT: more
// examples than any step can have. RESOURCE_EXHAUSTED as CheckRoomFor.
absl::Status CheckBatchMemory(const ExampleStore& store, const PipelineOptions& options,
                              int64_t ahead, int64_t orders, const BatchFields& fields);

}  // namespace lockstep::worker
