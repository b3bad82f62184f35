// What the chief counts on when it orders steps.
#pragma once

#include <cstdint>

namespace lockstep::chief {

// Steps whose grants are parked at every shard: so far may a shard be ahead of the step shard.
inline constexpr int64_t kGrantsAhead = 2;

}  // namespace lockstep::chief
