// The stream that a list of transformations describes.
#pragma once

#include <cstdint>
#include <memory>

#include "absl/types/span.h"
#include "common/dataset/transform_step.h"
#include "worker/data/transform/element_stream.h"

namespace lockstep::worker {

// Seeds of random choices. Before a shard all replicas choose alike, so that their shards have no
// element in common.
struct StreamSeeds {
  uint64_t job = 0;
  uint64_t replica = 0;
};

// `num_examples` examples, transformed by the first step, then by the next one.
std::unique_ptr<ElementStream> MakeStream(absl::Span<const TransformStep> steps,
                                          int64_t num_examples, const StreamSeeds& seeds);

}  // namespace lockstep::worker
