// Cuts the messages of a schedule, so that a participant passes the beginning of a sum on while the
// rest of its terms is still on the way.
#pragma once

#include <cstddef>

#include "worker/collective/schedule.h"

namespace lockstep::worker {

// The same additions of the same elements, in messages of at most `max_elements` (CHECK: not 0). A
// send that follows a sum or a copy of its own range is interleaved with it, piece by piece.
// Messages to a participant are sent in the order in which it uses them, so that a bound on those
// that are not used yet stops nobody. All participants must cut alike.
Schedule SplitMessages(const Schedule& schedule, size_t max_elements);

}  // namespace lockstep::worker
