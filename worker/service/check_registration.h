// Checks the chief's reply to a worker that joins a job, before the worker uses it. Pure.
#pragma once

#include <cstddef>
#include <cstdint>

#include "absl/status/status.h"
#include "proto/chief.pb.h"

namespace lockstep::worker {

// For worker `worker` of a cluster of `num_ps` ps. INVALID_ARGUMENT naming the first field that is
// out of its range, does not fit the others, or is an enum value that this version does not know.
// Model, placement and data are checked where they are read.
absl::Status CheckRegistration(const RegisterTaskReply& reply, uint32_t worker, size_t num_ps);

}  // namespace lockstep::worker
