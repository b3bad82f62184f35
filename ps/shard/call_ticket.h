// Names a call that may be parked, so that it can be withdrawn when nobody waits for its answer any
// more (Shard::CancelCall). Of one call at a time.
#pragma once

#include <cstdint>

namespace lockstep::ps {

// The fields are guarded by the lock of the shard that has the call; others only keep it.
struct CallTicket {
  bool is_cancelled = false;
  uint64_t pull = 0;     // number of the parked pull; 0: none yet
  uint64_t dequeue = 0;  // number of the parked dequeue; 0: none yet
};

}  // namespace lockstep::ps
