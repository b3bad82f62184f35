// What the fields of DataDef ask of the examples, checked.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "worker/data/example_store.h"
#include "worker/data/index_stream.h"

namespace lockstep::worker {

// Of the examples of a step or a load: 64 GiB. More is a mistake in the job.
inline constexpr int64_t kMostBatchElements = int64_t{1} << 34;

// INVALID_ARGUMENT naming shuffle_buffer.
absl::StatusOr<ShuffleWindow> WindowOf(const DataDef& data, int64_t num_examples);

// INVALID_ARGUMENT where the examples are no images, or too small to be moved by `most` pixels.
absl::Status CheckShift(int64_t most, const ExampleStore& store);

}  // namespace lockstep::worker
