// Compares the reductions of two members of a group: once in a view, before the first result.
#pragma once

#include <cstddef>
#include <string>

#include "absl/status/status.h"
#include "proto/peer.pb.h"
#include "worker/collective/group_reducer.h"

namespace lockstep::worker {

// The most bytes of an algorithm's name in an error: other members may send anything.
inline constexpr size_t kMaxShownAlgorithm = 100;

// Describes this member's reduction, without `sender`. `message_bytes` is the size of a message.
CompareRequest DescribeReduction(const GroupReduction& reduction, size_t message_bytes);

// INVALID_ARGUMENT naming the difference, both values, and `who`, the sender of `theirs`.
absl::Status CompareReductions(const CompareRequest& own, const CompareRequest& theirs,
                               const std::string& who);

}  // namespace lockstep::worker
