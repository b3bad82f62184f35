// What the chief counts on when it orders steps.
#pragma once

#include <cstddef>
#include <cstdint>

namespace lockstep::chief {

// The shard with the global step and the tokens.
inline constexpr size_t kStepShard = 0;
// Steps whose grants are parked at every shard: so far may a shard be ahead of the step shard.
inline constexpr int64_t kGrantsAhead = 2;

}  // namespace lockstep::chief
