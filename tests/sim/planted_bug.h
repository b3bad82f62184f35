// Ps that break one rule of the protocol, so that tests can tell whether the simulator finds that.
// The rule is broken between the network and the real shard.
#pragma once

#include <cstdint>
#include <memory>

#include "common/client/ps_control.h"
#include "tests/support/ps_data.h"

namespace lockstep::sim {

enum class PlantedBug : uint8_t {
  kNone,
  kDoubleApply,  // a push that arrives again counts again
  kLostToken,    // one token leaves the queue and reaches nobody
  kSharedTerm,   // another chief may use the term of the one that set it
  kOldView,      // a view with an older number is accepted
};

// `ps` with the bug. It outlives them.
std::unique_ptr<PsControl> MakeFaultyControl(PsControl* ps, PlantedBug bug);
std::unique_ptr<PsData> MakeFaultyData(PsData* ps, PlantedBug bug);

}  // namespace lockstep::sim
