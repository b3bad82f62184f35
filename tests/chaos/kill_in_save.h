// A kill in the middle of a save.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "tests/chaos/chaos_task.h"
#include "tests/chaos/ongoing_fault.h"

namespace lockstep::test {

// Waits until one of `tasks`, which outlive it, has a temporary file open below `folder`, that of
// the checkpoints, and kills it before the file has its name. The fault advances then.
std::unique_ptr<OngoingFault> KillInSave(std::vector<ChaosTask*> tasks, const std::string& folder);

}  // namespace lockstep::test
