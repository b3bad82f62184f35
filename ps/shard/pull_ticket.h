// Names a pull that may be parked, so that it can be withdrawn when its caller has gone
// (Shard::CancelPull).
#pragma once

#include <cstdint>

namespace lockstep::ps {

// The fields are guarded by the lock of the shard that has the call; others only keep it.
struct PullTicket {
  bool is_cancelled = false;
  uint64_t pull = 0;  // number of the parked pull; 0: none yet
};

}  // namespace lockstep::ps
