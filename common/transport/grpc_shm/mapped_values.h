// Pulled values that lie in the ps's memory, which this process has mapped.
#pragma once

#include <memory>

#include "absl/status/statusor.h"
#include "common/shm/segment.h"
#include "common/transport/received_tensors.h"
#include "proto/ps.pb.h"

namespace lockstep {

// The values that `reply`, the answer to `request`, names in `memory`. INVALID_ARGUMENT: a place
// that is not in the memory, other pieces than were asked for.
absl::StatusOr<ReceivedTensors> MappedValues(const PullRequest& request, const PullReply& reply,
                                             std::shared_ptr<const shm::Segment> memory);

}  // namespace lockstep
