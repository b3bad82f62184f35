// Checks fields of DataDef against the examples.
#pragma once

#include <cstdint>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "proto/job.pb.h"
#include "worker/data/example_store.h"
#include "worker/data/index_stream.h"

namespace lockstep::worker {

// The most elements in the examples of a step or a load: 64 GiB. More is a mistake in the job.
inline constexpr int64_t kMostBatchElements = int64_t{1} << 34;

// INVALID_ARGUMENT naming shuffle_buffer.
absl::StatusOr<ShuffleWindow> WindowOf(const DataDef& data, int64_t num_examples);

// INVALID_ARGUMENT if the examples are not images, or are too small for a shift by `most` pixels.
absl::Status CheckShift(int64_t most, const ExampleStore& store);

}  // namespace lockstep::worker
