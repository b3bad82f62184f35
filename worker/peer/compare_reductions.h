// Whether two members of a group reduce the same: asked once in a view, before the first result.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "proto/peer.pb.h"
#include "worker/collective/group_reducer.h"

namespace lockstep::worker {

// Bytes of an algorithm's name in an error: other members may send anything.
inline constexpr size_t kMaxShownAlgorithm = 100;

// What a member says of its reduction; without `sender`. `message_bytes`: as messages are cut.
CompareRequest DescribeReduction(const GroupReduction& reduction, size_t message_bytes);

// INVALID_ARGUMENT naming what differs, both values, and `who` sent `theirs`.
absl::Status CompareReductions(const CompareRequest& own, const CompareRequest& theirs,
                               const std::string& who);

}  // namespace lockstep::worker
