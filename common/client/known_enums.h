// Checks that a peer's message has no enum value that this program does not know.
#pragma once

#include <google/protobuf/message.h>

#include "absl/status/status.h"

namespace lockstep {

// A protobuf reader keeps the numbers of enum values that it does not know. INVALID_ARGUMENT names
// the first such field of `message`, at any depth: "job.sync.token_policy: 7 is none of
// PER_REPLICA, FIFO".
absl::Status CheckEnums(const google::protobuf::Message& message);

}  // namespace lockstep
