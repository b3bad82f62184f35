// The staleness rule, in one place.
#pragma once

#include "common/base/ids.h"

namespace lockstep::ps {

// A gradient is dropped when it was computed from an older step than the accumulator is at. Equal
// and future stamps are fresh.
inline bool IsStale(GlobalStep local_step, GlobalStep accumulator_step) {
  return local_step < accumulator_step;
}

}  // namespace lockstep::ps
