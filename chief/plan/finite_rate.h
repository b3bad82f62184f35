// Jobs whose learning rate grows beyond all numbers.
#pragma once

#include "absl/status/status.h"
#include "common/base/ids.h"
#include "proto/job.pb.h"

namespace lockstep::chief {

// The job is complete. INVALID_ARGUMENT where a learning rate is infinite in a step before `end`.
// Pure.
absl::Status CheckFiniteRate(const JobDef& job, GlobalStep end);

}  // namespace lockstep::chief
