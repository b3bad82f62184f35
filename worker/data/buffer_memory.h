// Computes the memory for the examples that a worker prepares ahead.
#pragma once

#include <cstdint>
#include <string>

#include "common/base/memory_room.h"

namespace lockstep::worker {

// The buffers of examples that pipelines allocate before their first step.
struct BufferMemory {
  int64_t buffers = 0;
  int64_t examples = 0;  // in each buffer
  int64_t bytes_per_example = 0;
  // Lists of example numbers, each in the order in which one pipeline draws them.
  int64_t orders = 0;
  int64_t examples_in_order = 0;
  std::string field;   // of the job, that sets the size
  std::string remedy;  // such as "lower it"
};

// For CheckRoomFor. The error names the field, the bytes and how they are computed.
MemoryNeed NeedOf(const BufferMemory& buffers);

}  // namespace lockstep::worker
