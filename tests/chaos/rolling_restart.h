// The restart of each task of a job, one after another.
#pragma once

#include <memory>
#include <vector>

#include "tests/chaos/chaos_task.h"
#include "tests/chaos/ongoing_fault.h"

namespace lockstep::test {

// Tells each of `tasks`, which outlive it, to end with SIGTERM, and starts it again at once: the
// next one when the one before runs and the job trains.
std::unique_ptr<OngoingFault> RestartInTurn(std::vector<ChaosTask*> tasks);

}  // namespace lockstep::test
