// Whether there is memory for the examples that a worker prepares ahead.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/status.h"

namespace lockstep::worker {

// The buffers of examples that a pipeline takes before its first step.
struct BufferMemory {
  int64_t buffers = 0;
  int64_t examples = 0;  // in each buffer
  int64_t bytes_per_example = 0;
  std::string fields;  // of the job, that say how much this is
};

// RESOURCE_EXHAUSTED with the exit code of a wrong configuration, naming the fields, where the
// buffers take more than `available` bytes: the system would rather end a process than refuse.
// Small amounts always pass. nullopt: the system does not say what is available.
absl::Status CheckBufferMemory(const BufferMemory& need, std::optional<uint64_t> available);

}  // namespace lockstep::worker
