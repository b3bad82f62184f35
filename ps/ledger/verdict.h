#pragma once

#include <cstdint>

namespace lockstep::ps {

// What became of one variable of one push.
enum class Verdict : uint8_t {
  kPending,   // not whole yet
  kAccepted,  // counted, or the replica had been counted in this step already
  kStale,     // dropped
};

}  // namespace lockstep::ps
