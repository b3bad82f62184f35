#pragma once

#include <cstdint>

namespace lockstep::ps {

// What became of one variable of one push. On the wire: Verdict.
enum class PushStatus : uint8_t {
  kPending,   // has not arrived whole
  kAccepted,  // counted, or the replica had been counted in this step already
  kStale,     // dropped
};

}  // namespace lockstep::ps
