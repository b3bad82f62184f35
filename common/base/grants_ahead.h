// The number of steps that a shard may be ahead of the job.
#pragma once

#include <cstdint>

namespace lockstep {

// Steps whose grants a chief keeps parked at every shard, before it has committed them. A shard
// that waits for no gradients closes them all.
inline constexpr int64_t kGrantsAhead = 2;

}  // namespace lockstep
