// A ps at the other end of a simulated network.
#pragma once

#include <memory>

#include "common/client/ps_control.h"
#include "tests/sim/network.h"
#include "tests/support/ps_data.h"

namespace lockstep::sim {

// `link` leads to the ps. What is pointed to outlives them, and so do the calls in flight.
std::unique_ptr<PsControl> MakeRemoteControl(PsControl* ps, const Link& link, Network* network);
// Of one worker process. Cancel ends what is in flight before it returns; the ps still gets it.
std::unique_ptr<PsData> MakeRemoteData(PsData* ps, const Link& link, Network* network);

}  // namespace lockstep::sim
