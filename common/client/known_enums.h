// Whether a peer's message says only what this program knows.
#pragma once

#include <google/protobuf/message.h>

#include "absl/status/status.h"

namespace lockstep {

// A protobuf reader keeps the numbers of enum values that it does not know. INVALID_ARGUMENT names
// the first such field of `message`, in whatever depth: "job.sync.token_policy: 7 is none of
// PER_REPLICA, FIFO".
absl::Status CheckEnums(const google::protobuf::Message& message);

}  // namespace lockstep
